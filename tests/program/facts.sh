#!/usr/bin/env bash
# What a host knows of machine and run reaches the policy, and a replay decides by the same: a plug-in that decides by one
# fact sets clocks where that fact is known and none where it is not, in a run and under `live`; its log replays without
# a difference, and with one where the fact was another.
#   tests/program/facts.sh build/foldline
. "$(dirname "$0")/shell.sh"
cc -std=gnu17 -O1 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I "$root" -o "$dir/facts.so" tests/support/facts_policy.c -lm ||
  { echo "not ok - build"; exit 1; }
"$f" synth -o "$dir/t.csv" --kernels 2000 --seed 1 --mean-us 1000 >/dev/null
sets() { awk -F, '/^[^#]/ && !/^step/ && $3 == 0 && $5 != "" { n++ } END { print n + 0 }' "$1"; }
run() { # FACT, then options
  local fact=$1
  shift
  "$f" run "$dir/t.csv" --platform generic --policy "$dir/facts.so:fact=$fact" --log "$dir/$fact.csv" "$@" >/dev/null
}
other() { # FACT SED: the same log under another head
  sed "$2" "$dir/$1.csv" >"$dir/other.csv"
  "$f" verify "$dir/other.csv" --policy "$dir/facts.so" >"$dir/out"
  [ $? = 1 ]
}

# ---- what a user states ----
for fact in bound deadline expected streams; do
  run $fact
  check "$fact is not known where nobody states it" [ "$(sets "$dir/$fact.csv")" = 0 ]
  check "nor in the head" eval "! grep -q '^# stated\.' '$dir/$fact.csv'"
done
stated=(--bound 7.3% --deadline 12.34567 --expected 3.14159 --streams 314159)
for fact in bound:bound deadline:deadline_ns expected:expected_ns streams:streams; do
  key=${fact#*:} fact=${fact%:*}
  run $fact "${stated[@]}"
  check "$fact reaches the policy" [ "$(sets "$dir/$fact.csv")" -gt 50 ]
  succeed "$fact, replayed" ', 0 differ' "$f" verify "$dir/$fact.csv" --policy "$dir/facts.so"
  check "another $fact decides otherwise" other $fact "s/^# stated\.$key: .*/# stated.$key: 2718281828/"
done
sed 's/^# stated\.deadline_ns: .*/# stated.deadline_ns: -4/' "$dir/deadline.csv" >"$dir/other.csv"
sed 's/^# stated\.streams: .*/# stated.streams: 1.5/' "$dir/streams.csv" >"$dir/half.csv"
refuse "half a stream" 2 'head: stated\.streams is missing or wrong' "$f" verify "$dir/half.csv" --policy "$dir/facts.so"
refuse "a deadline that cannot be" 2 'head: stated\.deadline_ns is missing or wrong' "$f" verify "$dir/other.csv" --policy "$dir/facts.so"
"$f" compare "$dir/t.csv" --platform generic --policy "$dir/facts.so:fact=bound" --bound 7.3% -o "$dir/bound.with.csv" >/dev/null
"$f" compare "$dir/t.csv" --platform generic --policy "$dir/facts.so:fact=bound" -o "$dir/bound.without.csv" >/dev/null
energy() { awk -F, '/facts/ { gsub(/"[^"]*"/, "policy"); print $5, $6, $7; exit }' "$1"; }
check "the bound of a comparison reaches it" [ "$(energy "$dir/bound.with.csv")" != "$(energy "$dir/bound.without.csv")" ]


# ---- what an experiment states ----
experiment() { # FACT, then keys
  printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["t.csv"], "oracles": false, "policies": ["%s:fact=%s"]%s}\n' \
    "$dir/facts.so" "$1" "$2" >"$dir/e.json"
}
for fact in deadline expected streams; do
  experiment $fact ''
  "$f" compare "$dir/e.json" -o "$dir/without.csv" >/dev/null
  experiment $fact ", \"$fact\": $([ $fact = streams ] && echo 123457 || echo 12.34567)"
  "$f" compare "$dir/e.json" -o "$dir/with.csv" >/dev/null
  check "the $fact of an experiment reaches it" [ "$(energy "$dir/with.csv")" != "$(energy "$dir/without.csv")" ]
  experiment $fact ", \"$fact\": 0"
  refuse "a $fact of 0" 2 "$fact" "$f" compare "$dir/e.json"
done
experiment streams ''
succeed "a gate without streams" 'recorded' "$f" regress "$dir/e.json" --bless -o "$dir/without.json"
succeed "a gate with them" 'recorded' "$f" regress "$dir/e.json" --bless -o "$dir/with.json" --streams 123457
check "they reach the policy" [ "$(grep -A 9 '"values"' "$dir/with.json")" != "$(grep -A 9 '"values"' "$dir/without.json")" ]
succeed "the record keeps them" 'gates hold' "$f" regress "$dir/with.json" --fail-if 'energy_j!0.001%'
"$f" regress "$dir/without.json" --fail-if 'energy_j!0.001%' --streams 123457 >"$dir/out"
check "others are another result" [ $? = 1 ]

# ---- what a platform says ----
for fact in lag settle volt a a0 b b0 c; do
  run $fact
  check "$fact of a platform reaches the policy" [ "$(sets "$dir/$fact.csv")" -gt 50 ]
  succeed "$fact, replayed" ', 0 differ' "$f" verify "$dir/$fact.csv" --policy "$dir/facts.so"
done
sed 's/"kernel_us": 0.8/"slowdown_pct": 2/' models/platforms/generic.json >"$dir/share.json"
"$f" run "$dir/t.csv" --platform "$dir/share.json" --policy "$dir/facts.so:fact=records" --log "$dir/records.csv" >/dev/null
check "a share says nothing of a record's time" [ "$(sets "$dir/records.csv")" = 0 ]
sed 's/"kernel_us": 0.8/"kernel_us": 1.234/' models/platforms/generic.json >"$dir/timed.json"
"$f" run "$dir/t.csv" --platform "$dir/timed.json" --policy "$dir/facts.so:fact=records" --log "$dir/records.csv" >/dev/null
check "what a record takes reaches the policy" [ "$(sets "$dir/records.csv")" -gt 50 ]
succeed "records, replayed" ', 0 differ' "$f" verify "$dir/records.csv" --policy "$dir/facts.so"
sed 's/"kernel_us": 1.234/"kernel_us": 5.678/' "$dir/timed.json" >"$dir/longer.json"
sed 's/"kernel_us": 1.234/"slowdown_pct": 2, "kernel_us": 1.234/' "$dir/timed.json" >"$dir/both.json"
"$f" run "$dir/t.csv" --platform "$dir/both.json" --policy "$dir/facts.so:fact=records" --log "$dir/both.csv" >/dev/null
check "beside a share a time is not the whole cost" [ "$(sets "$dir/both.csv")" = 0 ]
check "another time decides otherwise" eval "! '$f' replay '$dir/records.csv' --policy '$dir/facts.so' --platform '$dir/longer.json' >/dev/null"
sed 's/"settle_ms": 20/"settle_ms": 23.7/; s/"lag_ms": [0-9.]*/"lag_ms": 123.4/' models/platforms/generic.json >"$dir/slow.json"
check "another settle time decides otherwise" eval "! '$f' replay '$dir/settle.csv' --policy '$dir/facts.so' --platform '$dir/slow.json' >/dev/null"
check "and leaves the law as it is" "$f" verify "$dir/volt.csv" --policy "$dir/facts.so" --platform "$dir/slow.json"

# ---- an executed controller ----
way=traces/samples/gridpilot/matmul.trajectory.csv.gz
succeed "GridPilot's controller decides as it was executed, but for rounding" ' 7 differ' "$f" verify --format trajectory $way
check "with another gain it does not" eval "! '$f' verify --format trajectory --set ki=1 $way >'$dir/way'"
check "which rounding does not explain" grep -q '^[0-6] of them by rounding' "$dir/way"
"$f" run traces/samples/mix8.csv --platform v100-300w --policy gridpilot --target traces/samples/gridpilot/demand.csv --log "$dir/asked.csv" >/dev/null
succeed "a log with a target replays" ', 0 differ' "$f" verify "$dir/asked.csv"

# ---- live ----
live() { # FACT, then options
  local fact=$1
  shift
  FOLDLINE_STATE=$dir/state "$f" emulate "$dir/t.csv" --platform rtx4070-laptop --time virtual --quiet --privileged -- \
    "$f" live --policy "$dir/facts.so:fact=$fact" --for 1s -o "$dir/$fact.csv" "$@" >/dev/null
}
live settle
check "a machine without a platform file: settle time is not known" [ "$(sets "$dir/settle.csv")" = 0 ]
for fact in bound deadline streams settle lag volt c; do
  live $fact "${stated[@]}" --platform rtx4070-laptop
  check "$fact, live" [ "$(sets "$dir/$fact.csv")" -gt 5 ]
  succeed "$fact, live, replayed" ', 0 differ' "$f" verify "$dir/$fact.csv"
done
live expected "${stated[@]}"
succeed "length, of a machine that its log describes" ', 0 differ' "$f" verify "$dir/expected.csv" --policy "$dir/facts.so"
check "which was known" [ "$(sets "$dir/expected.csv")" -gt 5 ]

# ---- streams: what a trace shows cannot be denied ----
"$f" synth -o "$dir/two.csv" --kernels 2000 --streams 2 --seed 7 >/dev/null
refuse "fewer streams than there are" 2 'two.csv: 2 streams use GPU 0, but --streams is 1' "$f" run "$dir/two.csv" --platform generic --policy maxfreq --streams 1
check "as many" "$f" run "$dir/two.csv" --platform generic --policy maxfreq --streams 2

# ---- tightrope needs no collector ----
FOLDLINE_STATE=$dir/state "$f" emulate "$dir/t.csv" --platform rtx4070-laptop --time virtual --quiet --privileged -- \
  "$f" live --policy tightrope:alike=all --for 2s --control -o "$dir/bare.csv" >"$dir/out" 2>"$dir/err"
check "tightrope runs live without --rings" [ $? = 0 ]
check "and misses nothing that it needs" eval "! grep -q 'cannot be read\|needs kernel' '$dir/err'"
succeed "its log replays" ', 0 differ' "$f" verify "$dir/bare.csv"
refuse "depo still needs them" 3 'needs activity records: give --rings' "$f" emulate "$dir/t.csv" --platform rtx4070-laptop --time virtual \
  --quiet --privileged -- "$f" live --policy depo --for 1s
finish
