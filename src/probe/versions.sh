# Prints the image's id, then what Python inside it says of its modules. $1 docker's words, which want splitting; $2 the image.
id=$($1 image inspect --format '{{.Id}}' "$2") || exit
echo "image $id"
exec $1 run --rm --network none --entrypoint python3 "$2" -c
