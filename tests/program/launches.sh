#!/usr/bin/env bash
# A stream with the thread that launches into it, by its recurrence and from event to event: the same bytes from every
# command, on one thread and on two. What does not fit goes by events where the recurrence is asked for.
# Usage: tests/program/launches.sh FOLDLINE
. "$(dirname "$0")/shell.sh"

"$f" synth -o "$dir/ahead.csv" --kernels 20000 --launches --mean-us 50 --seed 3 >/dev/null
"$f" synth -o "$dir/behind.csv" --kernels 20000 --launches --mean-us 40 --gap-us 60 --seed 4 >/dev/null
"$f" synth -o "$dir/two.csv" --kernels 2000 --launches --streams 2 --seed 5 >/dev/null
# a synchronisation after each tenth launch, until its kernel ends, and 4 us to return
awk -F, -v OFS=, '{ print } /^[0-9]/ && ++n % 10 == 0 { print $1, $2, $3, $13, $5 + 4000, "[sync]", "", "", "", "", "", "", "", $14 }' \
  "$dir/behind.csv" >"$dir/syncs.csv"
cp "$dir/behind.kinds.csv" "$dir/syncs.kinds.csv"

# taken PATH: how many stretches the last command took by it
taken() { sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$dir/err"; }

# same NAME WAY COMMAND...: the same by both paths; WAY is the one that is taken where launches are asked for
same() {
  local name=$1 way=$2
  shift 2
  "$@" --path events >"$dir/events.out" 2>"$dir/err" || bad "$name, by events" "$(cat "$dir/err")"
  check "$name: none by launches where events are forced" [ "$(taken launches)" = 0 ]
  "$@" --path launches >"$dir/launches.out" 2>"$dir/err" || bad "$name, by launches" "$(cat "$dir/err")"
  check "$name: some by $way" [ "$(taken "$way")" -gt 0 ]
  check "$name: the same bytes" cmp "$dir/events.out" "$dir/launches.out"
  "$@" --path auto >"$dir/auto.out" 2>"$dir/err" || bad "$name, by the fastest" "$(cat "$dir/err")"
  check "$name: the same bytes, eight at a time too" cmp "$dir/events.out" "$dir/auto.out"
  check "$name: something in them" [ -s "$dir/launches.out" ]
}

for trace in ahead behind syncs; do
  same "$trace" launches "$f" run "$dir/$trace.csv" --platform generic --policy utilizscale --json
done
same inference launches "$f" run traces/samples/inference.csv --platform generic --policy assure --json
same "two streams" events "$f" run "$dir/two.csv" --platform generic --policy utilizscale --json
same requests events "$f" run traces/samples/inference.csv --platform generic --policy nvboost --json --arrivals poisson:rate=10,count=5
same compare launches "$f" compare "$dir/syncs.csv" --platform generic --policy utilizscale --policy maxfreq --policy energyucb --seeds 2 --threads 2 --json
cp "$dir/launches.out" "$dir/twice.out"
same "compare on one thread" launches "$f" compare "$dir/syncs.csv" --platform generic --policy utilizscale --policy maxfreq --policy energyucb --seeds 2 --threads 1 --json
check "on one thread and on two" cmp "$dir/twice.out" "$dir/launches.out"
finish
