#!/usr/bin/env bash
# SQLite is loaded where a file of it is opened, and nowhere else: a program without the library says what is missing.
. "$(dirname "$0")/shell.sh"

mkdir "$dir/without"
echo 'no library' >"$dir/without/libsqlite3.so.0" # found first, and it cannot be loaded
printf 'SQLite format 3\0%4096s' '' >"$dir/t.sqlite"
refuse "with the library the file itself is looked at" 2 't[.]sqlite: .*expected the SQLite export of a profiler' \
  "$f" show "$dir/t.sqlite"
export LD_LIBRARY_PATH=$dir/without
for c in show "run --platform generic --policy maxfreq" "import -o $dir/o.csv"; do
  refuse "$c without the library" 3 't[.]sqlite: is an SQLite file, but libsqlite3[.]so[.]0 is not installed' "$f" $c "$dir/t.sqlite"
done
check "nothing is written" [ ! -e "$dir/o.csv" ]
succeed "other formats need none" utilizscale "$f" run traces/samples/mix8.csv --platform generic --policy utilizscale
check "the program does not ask for it" bash -c "! ldd '$f' | grep -q sqlite"
finish
