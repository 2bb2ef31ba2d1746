#!/usr/bin/env bash
# The scan of a lone stream gives the same bytes in vector registers as by its plain loop, and on AArch64, where it is
# plain: whole runs of the program by forced paths, and the scan alone, built for both machines.
. "$(dirname "$0")/shell.sh"

# ---- whole runs ----

run() { # PATH TRACE POLICY...: rows of the steps and the result, without the line that says how long it took
  local path=$1 trace=$2
  shift 2
  "$f" run "$trace" --kinds "${trace%.csv}.kinds.csv" --platform generic --path "$path" --json "$@" >"$dir/$path.json" \
    2>"$dir/$path.err"
}
same() { # NAME TRACE POLICY...: plain, vector and what a run takes by itself
  local name=$1 path
  shift
  for path in plain vector auto; do
    run $path "$@" || { bad "$name" "$path: $(head -c 300 "$dir/$path.err")"; return; }
  done
  check "$name: vector" cmp "$dir/plain.json" "$dir/vector.json"
  check "$name: auto" cmp "$dir/plain.json" "$dir/auto.json"
}
for gap in 2 200; do # 200: 72 % of the gaps are escapes
  "$f" synth -o "$dir/t$gap.csv" --kernels 20000 --gap-us $gap --mean-us 50 --burst 1 >/dev/null || bad "synth"
  for policy in utilizscale random energyucb; do
    same "gaps of $gap us, $policy" "$dir/t$gap.csv" --policy $policy
  done
  same "gaps of $gap us, maxfreq" "$dir/t$gap.csv" --policy maxfreq
done

# ---- the scan alone ----

flags="-std=gnu17 -O2 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Werror -I. -D_GNU_SOURCE"
sources="tests/support/scan_digest.c sim/advance/scan.c sim/advance/scan_plain.c sim/advance/scan_avx2.c sim/advance/scan_avx512.c"
check "the scan builds alone" cc $flags $sources -o "$dir/digest"
"$dir/digest" plain >"$dir/plain"
check "it prints a number" test -s "$dir/plain"
for path in vector auto; do
  "$dir/digest" $path >"$dir/$path"
  check "the scan alone: $path" cmp "$dir/plain" "$dir/$path"
done

cross=aarch64-linux-gnu-gcc
# a cross compiler may be there without a C library for its target
if echo '#include <math.h>' | $cross -x c -fsyntax-only - 2>/dev/null && command -v qemu-aarch64 >/dev/null; then
  check "AArch64: the scan builds" $cross $flags -static $sources -o "$dir/digest64"
  qemu-aarch64 "$dir/digest64" plain >"$dir/plain64"
  check "AArch64: plain gives the same" cmp "$dir/plain" "$dir/plain64"
  qemu-aarch64 "$dir/digest64" vector >"$dir/vector64"
  check "AArch64: vector gives way to plain" cmp "$dir/plain" "$dir/vector64"
  mkdir "$dir/include" && ln -s /usr/include/gsl "$dir/include/gsl" # headers alone, the same on every machine
  for source in sim/*/*.c; do
    $cross $flags -isystem "$dir/include" -fsyntax-only "$source" || echo "$source"
  done >"$dir/bad" 2>&1
  check "AArch64: all of sim/ compiles" test ! -s "$dir/bad"
else
  echo "skipped - AArch64: no $cross, no C library for it, or no qemu-aarch64 (Debian packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
fi
finish
