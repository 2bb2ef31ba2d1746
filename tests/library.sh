#!/usr/bin/env bash
# libfoldline as another program uses it: built with the thread sanitizer, installed, found by pkg-config; it shows
# foldline_* alone, and two threads run two scenes at once.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "library: $1"
  exit 1
}
{ cmake -S . -B "$dir/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1 -fsanitize=thread" -DBUILD_TESTING=OFF &&
  cmake --build "$dir/build" -j "$(nproc)" --target libfoldline &&
  cmake --install "$dir/build" --component library --prefix "$dir/first place"; } >"$dir/log" 2>&1 ||
  fail "the build: $(tail -n 5 "$dir/log")"
mkdir -p "$dir/first place/share/foldline"
cp -r models/platforms models/boards "$dir/first place/share/foldline"
mv "$dir/first place" "$dir/place"
export PKG_CONFIG_PATH=$dir/place/lib/pkgconfig LD_LIBRARY_PATH=$dir/place/lib
build() { # SOURCE PROGRAM
  # shellcheck disable=SC2046 # words
  cc -Wall -Wextra -Werror -g1 -fsanitize=thread "$1" $(pkg-config --cflags --libs foldline) -o "$2" || fail "$1 is not built"
}
build "$dir/place/share/doc/foldline/embed.c" "$dir/embed"
fixed() { setarch -R "$@"; } # the sanitizer's memory has fixed places
cd "$dir"
fixed ./embed "$root/traces/samples/launches.csv" v100-300w 150 >out || fail "the example: $(tail -n 3 out)"
grep -q '^# [0-9.]* J in [0-9.]* s$' out || fail "what the example prints: $(cat out)"
fixed ./embed "$root/traces/samples/launches.csv" v100-300w 20 2>err && fail "a limit that the board does not take is taken"
grep -q 'in its range: 150 to 300 W' err || fail "it is not told: $(cat err)"
names=$(nm -D --defined-only place/lib/libfoldline.so | awk '{ print $3 }' | grep -v '^foldline_' || true)
[ -z "$names" ] || fail "the shared library shows $names"
names=$(nm -g --defined-only place/lib/libfoldline.a | awk 'NF == 3 { print $3 }' | grep -v '^foldline_' || true)
[ -z "$names" ] || fail "the archive shows $names"
fixed_two=$root/tests/support/clients/two_scenes.c
build "$fixed_two" two
fixed ./two "$root/traces/samples" >out 2>&1 || fail "two threads: $(tail -n 20 out)"
grep -q '^the same$' out || fail "two threads: $(cat out)"
echo "installed, linked, and used by two threads"
