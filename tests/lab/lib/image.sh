# The images of the nodes, made without any registry of images.
#
# The Ray image is Debian's smallest root file system with Python, real Ray from PyPI, and the stand-in for vLLM. It is made in two
# steps, each kept in the cache under a name that changes with what it is made of: the base, which is slow, and the whole.

PYTHON=/usr/bin/python3
PYTHON_VERSION=3.11 # Debian 12's: the image's, and this machine's, whose pip fills the image
SITE=usr/local/lib/python$PYTHON_VERSION/dist-packages

# Named by the functions that make it: another recipe is another file.
base_tar() { echo "$CACHE/base-ray$RAY_VERSION-$(declare -f debian_files ray_files | sha256sum | cut -c1-12).tar"; }

ray_image_tar() {
  local sources
  sources=$(cd "$LAB_SOURCE/image" && find . -type f ! -name '*.pyc' | sort)
  echo "$CACHE/image-$( (base_tar; cd "$LAB_SOURCE/image" && sha256sum $sources) | sha256sum | cut -c1-12).tar"
}

build_ray_image() {
  [ -f "$(ray_image_tar)" ] && return 0
  mkdir -p "$CACHE"
  if [ ! -f "$(base_tar)" ]; then
    rm -f "$CACHE"/*.tar
    build_base || return 1
  fi
  add_stand_in
}

build_base() {
  local work debian failed=0
  [ "$($PYTHON -c 'import sys; print("%d.%d" % sys.version_info[:2])')" = $PYTHON_VERSION ] ||
    { say "$PYTHON is not Python $PYTHON_VERSION; the lab needs Debian 12"; return 1; }
  say "building the image's base: Debian and Ray $RAY_VERSION (kept in $CACHE)"
  work=$(mktemp -d "$CACHE/build.XXXXXX")
  debian_files "$work/root" >"$work/debian.log" 2>&1 &
  debian=$!
  ray_files "$work/site" >"$work/ray.log" 2>&1 || { failed=1; say "Ray:"; tail -5 "$work/ray.log" >&2; }
  wait $debian || { failed=1; say "Debian:"; tail -5 "$work/debian.log" >&2; }
  if [ $failed = 0 ]; then
    { mv "$work"/site/bin/* "$work/root/usr/local/bin/" && rmdir "$work/site/bin" && mv "$work"/site/* "$work/root/$SITE/" &&
      tar -C "$work/root" --exclude='./dev/*' -cf "$work/base.tar" . && mv "$work/base.tar" "$(base_tar)"; } || failed=1
  fi
  rm -rf "$work"
  return $failed
}

debian_files() { # DIRECTORY
  # Nobody reads manuals in a container, and the image is copied to each node at every start of the lab.
  mmdebstrap --mode=root --variant=minbase --include=python3 \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$1"
}

ray_files() { # DIRECTORY
  $PYTHON -m pip install --quiet --only-binary=:all: --target "$1" "ray[default]==$RAY_VERSION" || return 1
  rm -rf "$1/ray/jars" # for Java, which the image hasn't
}

add_stand_in() {
  local work version failed
  say "adding the stand-in for vllm to the image"
  work=$(mktemp -d "$CACHE/build.XXXXXX")
  version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$LAB_SOURCE/image/vllm/__init__.py")
  # The metadata is what a package manager would have written: programs ask it for the version. Docker refuses a tar that names a path
  # twice, so only what is new is added, not the directories above it.
  install -D -m 755 "$LAB_SOURCE/image/bin/vllm" "$work/usr/local/bin/vllm" &&
    mkdir -p "$work/$SITE/vllm" "$work/$SITE/vllm-$version.dist-info" &&
    cp "$LAB_SOURCE"/image/vllm/*.py "$work/$SITE/vllm/" &&
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$version" >"$work/$SITE/vllm-$version.dist-info/METADATA" &&
    cp "$(base_tar)" "$work/image.tar" &&
    tar -C "$work" --owner=0 --group=0 -rf "$work/image.tar" \
      "./usr/local/bin/vllm" "./$SITE/vllm" "./$SITE/vllm-$version.dist-info" &&
    rm -f "$CACHE"/image-*.tar &&
    mv "$work/image.tar" "$(ray_image_tar)"
  failed=$?
  rm -rf "$work"
  return $failed
}

build_plain_image() {
  local root tar=$CACHE/plain.tar applet
  mkdir -p "$CACHE"
  [ -f "$tar" ] && return 0
  root=$(mktemp -d "$CACHE/build.XXXXXX")
  mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/root"
  cp /bin/busybox "$root/bin/"
  for applet in $(busybox --list | grep -vx busybox); do ln -s busybox "$root/bin/$applet"; done
  tar -C "$root" --owner=0 --group=0 -cf "$tar" .
  rm -rf "$root"
}

# Importing the same tar gives each engine an image id of its own, and equal layers, as pulling the same image does.
import_images() { # NODE [bare]
  on_host "$1" docker import - "$PLAIN_IMAGE" <"$CACHE/plain.tar" >/dev/null || return 1
  [ "${2:-}" = bare ] && return 0
  # The entry point is vLLM's, which whoever starts Ray in such an image has to override.
  on_host "$1" docker import \
    -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 RAY_USAGE_STATS_ENABLED=0' \
    -c 'ENTRYPOINT ["vllm", "serve"]' - "$RAY_IMAGE" <"$(ray_image_tar)" >/dev/null
}
