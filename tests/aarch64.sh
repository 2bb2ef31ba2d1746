#!/usr/bin/env bash
# Suites on AArch64 (Grace hosts): cross-built against Debian's libraries, run under qemu. Goldens hold there to the last
# digit, so no libm shows in them.
#   tests/aarch64.sh FOLDER    FOLDER: where the libraries (FOLDER/root) and the build go
# The whole program is built, too. FL_SUITES='sim': these suites instead, not yet run to their end under qemu. Nightly, as root:
# debootstrap makes the folder of libraries, and none of them is installed here.
set -eu
cd "$(dirname "$0")/.."
. harness/packages.sh
fl_install cmake make pkg-config gcc-aarch64-linux-gnu qemu-user debootstrap
mkdir -p "$1"
folder=$(realpath "$1") root=$(realpath "$1")/root
suites=${FL_SUITES:-policies traces models}
packages=libgsl-dev,libcsv-dev,libcjson-dev,libyajl-dev,zlib1g-dev,libexpat1-dev,libsqlite3-dev,libcunit1-dev,libc6-dev
if [ ! -e "$folder/ready" ]; then
  rm -rf "$root"
  debootstrap --foreign --arch=arm64 --variant=minbase --include="$packages" \
    bookworm "$root" >"$folder/root.log" 2>&1 || { tail -n 5 "$folder/root.log"; exit 1; }
  for package in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
  find "$root" -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
  touch "$folder/ready"
fi
export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
cmake -S . -B "$folder/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" -DFL_WERROR=ON \
  -DFL_SCRIPT_BUILD="$folder" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
  -DCMAKE_SYSROOT="$root" -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu -DCMAKE_FIND_ROOT_PATH="$root" \
  -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
  -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY >"$folder/cmake.log"
cmake --build "$folder/build" -j "${FL_JOBS:-$(nproc)}" --target foldline >"$folder/foldline.log" 2>&1 ||
  { tail -n 20 "$folder/foldline.log"; exit 1; }
status=0
for suite in $suites; do
  cmake --build "$folder/build" -j "${FL_JOBS:-$(nproc)}" --target "test_$suite" >"$folder/$suite.build.log" 2>&1 ||
    { tail -n 20 "$folder/$suite.build.log"; exit 1; }
  qemu-aarch64 -L "$root" "$folder/build/tests/test_$suite" >"$folder/$suite.log" 2>&1 || status=1
  grep -E '^ +(tests|asserts) ' "$folder/$suite.log" | awk -v suite="$suite" '
    { n[$1] += $3; failed[$1] += $5 }
    END {
      printf "%s: %d cases, %d failed; %d asserts, %d failed\n", suite, n["tests"], failed["tests"], n["asserts"],
        failed["asserts"]
    }'
done
exit $status
