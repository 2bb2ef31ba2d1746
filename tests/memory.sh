#!/usr/bin/env bash
# What big work takes of memory, nightly: the peak that the system counted for each command, against a ceiling. Memory is
# no time: the same command takes the same on any machine, but for the libraries.
#   tests/memory.sh PROGRAM
set -u
cd "$(dirname "$0")/.." || exit 1
f=$(realpath "${1:?usage: tests/memory.sh PROGRAM}")
dir=$(mktemp -d "${TMPDIR:-/tmp}/foldline-memory-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# peak COMMAND...: its peak in KiB, nothing where it did not exit with 0; its processor time on stderr
peak() {
  python3 - "$@" <<'EOF'
import resource, subprocess, sys
if subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode == 0:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%s: %.0f s of processor time" % (" ".join(sys.argv[2:4]), used.ru_utime + used.ru_stime), file=sys.stderr)
    print(used.ru_maxrss)
EOF
}
# at_most NAME KIB LIMIT
at_most() {
  if [ -n "$2" ] && [ "$2" -le "$3" ]; then
    echo "ok - $1: $2 KiB, at most $3"
  else
    echo "not ok - $1: ${2:-it failed}, expected at most $3 KiB"
    failed=1
  fi
}

"$f" synth -o "$dir/few.csv" --kernels 10 >/dev/null
"$f" synth -o "$dir/many.csv" --kernels 10000000 --kinds 512 --mean-us 50 >/dev/null
little=$(peak "$f" run "$dir/few.csv" --platform generic --policy utilizscale)
first=$(peak "$f" run "$dir/many.csv" --platform generic --policy utilizscale)
[ -s "$dir/many.csv.foldline-cache" ] || { echo "not ok - the trace is kept"; failed=1; }
again=$(peak "$f" run "$dir/many.csv" --platform generic --policy utilizscale)
echo "a run of 10 kernels: $little KiB; of 10 million, read for the first time: $first KiB"
at_most "a run of 10 million kernels from the cache, beyond the program" $((again - little)) $((85 * 10000000 / 1024))
at_most "mf-gpoeo.json on two threads" \
  "$(peak "$f" compare harness/experiments/mf-gpoeo.json --threads 2 -o "$dir/r.csv")" $((400000000 / 1024))
exit $failed
