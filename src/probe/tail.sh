# Prints "@@ from BYTE", then follows a file from that byte on. $1 the file, $2 the byte, or - for the file's last part, $3 how long that part is.
path=$1
case $path in
  '~/'*) path=$HOME/${path#??} ;;
esac
size=$(wc -c 2>/dev/null <"$path") || size=0
from=$2
if [ "$from" = - ] || [ "$from" -gt "$size" ]; then
  from=$((size - $3))
  [ "$from" -gt 0 ] || from=0
fi
echo "@@ from $from"
