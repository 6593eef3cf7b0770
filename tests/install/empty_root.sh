#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program needs only glibc: it runs in a root directory that holds nothing but it, glibc's own files and the examples.
#   tests/install/empty_root.sh PROGRAM SOURCE_DIR WORK_DIR      exit code 77: skipped
set -eu
program=$1
source_dir=$2
root=$3

if [ "$(id -u)" -eq 0 ]; then
  in_root() { chroot "$root" "$@"; }
elif unshare --map-root-user true 2>/dev/null; then
  in_root() { unshare --map-root-user chroot "$root" "$@"; }
else
  echo "SKIPPED: changing the root directory needs root or user namespaces"
  exit 77
fi

rm -rf "$root"
mkdir -p "$root"
ldd "$program" | while read -r line; do
  library=$(printf '%s\n' "$line" | sed -n -e 's/.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^\(\/[^ ]*\) .*/\1/p')
  case "$line" in
    linux-vdso* | linux-gate*) continue ;;
  esac
  case "$(basename "$library")" in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*.so.*) ;;
    *)
      echo "FAILED: the program needs more than glibc: $line" >&2
      exit 1
      ;;
  esac
  mkdir -p "$root/$(dirname "$library")"
  cp -L "$library" "$root/$library"
done
cp "$program" "$root/chokepoint"
cp -R "$source_dir/examples" "$root/examples"

in_root /chokepoint --version
grep -v -e '^#' -e '^$' "$source_dir/examples/commands.txt" | while read -r arguments; do
  echo "\$ chokepoint $arguments"
  # Exit code 1 is an answer too: a negative verdict.
  # shellcheck disable=SC2086  # split into words on purpose
  in_root /chokepoint $arguments </dev/null || [ $? -eq 1 ]
done
