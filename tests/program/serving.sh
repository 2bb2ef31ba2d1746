#!/usr/bin/env bash
# Servers of a language model as a user runs them: what is asked, what is told, the best static clock and number of
# servers, and what is refused. The small case is tests/golden/serving.csv; FL_BLESS=1 writes it anew.
. "$(dirname "$0")/shell.sh"

# A server whose law is round numbers, and forty requests that come in two waves.
cat >"$dir/s.csv" <<'END'
# foldline-serving 1
# model: made up, about 8 billion parameters
# gpu: made up
# max_seqs: 16
# token_budget: 512
# block_tokens: 16
# kv_blocks: 1000
what,at,kv,value
host_s,,,0.001
host_sequence_s,,,0.00001
token,,,0.0002
sequence,,,0.0001
weights_s,,,0.01
kv_s,,,0.00000013
pair,,,0.0000000005
sharpness,,,4
ref_sm_mhz,,,1410
clock,,,1410
END
awk 'BEGIN { print "# foldline-requests 1\nt_ns,prompt_tokens,output_tokens"
  for (i = 0; i < 40; i++) printf "%.0f,%d,%d\n", (int(i / 20) * 40 + i % 20) * 1e9, 50 + i * 37 % 900, 1 + i * 13 % 120 }' >"$dir/r.csv"
serve=("$dir/s.csv" "$dir/r.csv" --platform a100)
targets=(--ttft 1s --tbt 150ms)
value() { sed -n "s/^.*\"$2\":[[:space:]]*\([^,]*\).*\$/\1/p" "$1" | head -n 1; }

# ---- one run ----
succeed "a run" '^requests +40, ' "$f" run "${serve[@]}" "${targets[@]}" --policy nvboost --served "$dir/served.csv" --timeline "$dir/time.csv"
for line in '^TTFT .* p99' '^TBT .* p99' '^TPOT ' '^end to end ' '^missed .*the targets were met$' '^worst +minute' \
  '^energy each .* J per token' 'clocks were not measured' '1 server, TTFT within 1 s, TBT within 0.15 s for 99 %'; do
  check "it tells: $line" grep -qE "$line" "$dir/out"
done
check "a row for each request" test "$(wc -l <"$dir/served.csv")" = 41
check "its times go forward, and its latencies are their differences" awk -F, 'NR > 1 && ($4 < $3 || $5 <= $4 || $6 < $5 ||
  ($9 - ($5 - $3)) ^ 2 > 1 || ($12 - ($6 - $3)) ^ 2 > 1 || ($8 == 1) != ($10 == "")) { exit 1 }' "$dir/served.csv"
check "a timeline of servers has their queues" grep -q '^t_ns,device,.*,waiting,running,kv_used_pct$' "$dir/time.csv"
check "somebody runs in it" awk -F, '$9 > 0 { some = 1 } END { exit !some }' <(grep -v '^#' "$dir/time.csv" | tail -n +2)
"$f" run "${serve[@]}" "${targets[@]}" --policy nvboost --json >"$dir/run.json"
check "valid JSON" python3 -m json.tool "$dir/run.json" /dev/null
for key in energy_per_token_j energy_per_request_j goodput_rps ttft_missed_pct tbt_missed_pct preemptions worst_minute_missed_pct; do
  check "JSON has $key" [ -n "$(value "$dir/run.json" $key)" ]
done
check "the record says what is assumed" grep -q '"assumed":.*assumed: times at other clocks.*; joules per token: ' "$dir/run.json"
check "the record says of which clocks" grep -q '"clocks":.*clocks were not measured' "$dir/run.json"
check "requests and the rest are the node's energy" awk -v a="$(value "$dir/run.json" serving_j)" -v b="$(value "$dir/run.json" idle_j)" \
  -v c="$(sed -n 's/^\t"node_energy_j":[[:space:]]*\([^,]*\).*/\1/p' "$dir/run.json" | head -n 1)" 'BEGIN { exit !(c > 0 && ((a + b) / c - 1) ^ 2 < 1e-16) }'
check "the requests' energies are the steps'" awk -F, -v all="$(value "$dir/run.json" serving_j)" 'NR > 1 { sum += $16 + $17 }
  END { exit !((sum / all - 1) ^ 2 < 1e-12) }' "$dir/served.csv"

check "the energy of a request is that of its prompt and its output, and of a token its share" awk -F, 'NR > 1 && (($16 + $17 - $19) ^ 2 > 1e-12 * $19 ^ 2 ||
  ($19 / $8 - $20) ^ 2 > 1e-12 * $20 ^ 2 || $18 !~ /^[SML][SML]$/) { exit 1 }' "$dir/served.csv"

# ---- pools ----
split=("$dir/s.csv" "$dir/r.csv" --platform a100 --pools 2+1 --kv-bytes 131072)
succeed "prompts on two servers, outputs on a third" '2 prefill and 1 decode servers, links of 177 GB/s and 37 us' "$f" run "${split[@]}" "${targets[@]}" \
  --policy nvboost --served "$dir/split.csv"
check "it says on which side latencies are counted" grep -q '^moved .*TTFT is counted on the prefill side' "$dir/out"
check "all but requests of one token moved" awk -F, 'NR > 1 && (($8 == 1) != ($22 == "") || ($22 != "" && ($22 <= $5 || $2 != 2 || $21 > 1))) { exit 1 }' "$dir/split.csv"
succeed "a clock for each role" '1410 MHz [56][0-9].*, 705 MHz [34]' "$f" run "${split[@]}" --policy fixed-pools --set decode_mhz=705
succeed "a slow link" '^moved ' "$f" run "${split[@]}" --link 1,20us --policy ecoroute "${targets[@]}"
"$f" run "${split[@]}" --policy fixed-pools --set decode_mhz=705 --log "$dir/log.csv" >/dev/null
succeed "the decisions of a policy for roles are made again" ', 0 differ' "$f" verify "$dir/log.csv"
succeed "the best pair of clocks" '^best: .* for prefill, [0-9]+ MHz for decode' "$f" compare "${split[@]}" "${targets[@]}"
refuse "half a split" 2 "pools '4', expected numbers of prefill and decode servers" "$f" run "${serve[@]}" --pools 4 --kv-bytes 9 --policy nvboost
refuse "no link" 2 "link 'fast', expected GB/s and a latency" "$f" run "${split[@]}" --link fast --policy nvboost
refuse "a link of nothing" 2 'link is of pools, expected --pools P.D' "$f" run "${serve[@]}" --link 1,20us --policy nvboost
refuse "KV of unknown size" 2 'expected a row kv_bytes or --kv-bytes N' "$f" run "${serve[@]}" --pools 1+1 --policy nvboost
refuse "servers twice" 2 'expected no --servers with it' "$f" run "${split[@]}" --servers 2 --policy nvboost
refuse "roles without pools" 2 'no server with a role' "$f" run "${serve[@]}" --policy fixed-pools

printf '# foldline-requests 1\nt_ns,prompt_tokens,output_tokens\n0,100,1\n' >"$dir/one.csv"
succeed "a request of one token has no time between tokens" '^TBT +none' "$f" run "$dir/s.csv" "$dir/one.csv" --platform a100 --policy nvboost
check "and no number that is none" bash -c "! grep -q nan '$dir/out'"
check "one request" grep -q ', 1 request, ' "$dir/out"
"$f" run "$dir/s.csv" "$dir/one.csv" --platform a100 --policy nvboost --served "$dir/served1.csv" >/dev/null
check "a picture of one latency" "$f" plot latencies "$dir/served1.csv" -o "$dir/l1.svg"
check "whose axis has numbers, though it holds no power of ten" [ "$(grep -cE '>0\.0[0-9]+<' "$dir/l1.svg")" -ge 1 ]

# ---- load, servers, actuator ----
ttft() { "$f" run "${serve[@]}" --policy "${POLICY:-nvboost}" --json "$@" | sed -n '/"ttft":/,/}/s/^.*"mean_s":[[:space:]]*\([^,]*\).*/\1/p'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }'; }
check "more load, longer waits" less "$(ttft)" "$(ttft --scale 3)"
check "two servers wait less" less "$(ttft --scale 3 --servers 2)" "$(ttft --scale 3)"
check "two routes differ" [ "$(ttft --scale 3 --servers 2)" != "$(ttft --scale 3 --servers 2 --route least-loaded)" ]
check "a server for each GPU" grep -q '"gpus_each":[[:space:]]*1' "$dir/run.json"
check "fewer KV blocks, more waiting" less "$(ttft --scale 3)" "$(ttft --scale 3 --kv-blocks 70)"
tbt() { "$f" run "${serve[@]}" --policy nvboost --json "$@" | sed -n '/"tbt":/,/}/s/^.*"max_s":[[:space:]]*\([^,]*\).*/\1/p'; }
check "a smaller token budget, shorter steps" less "$(tbt --token-budget 64)" "$(tbt)"
sets="fixed:sm_mhz=600"
check "a clock that takes effect late is late" less "$(POLICY=$sets ttft --actuator 60s)" "$(POLICY=$sets ttft --actuator 0)"

# ---- comparison ----
compare() { "$f" compare "${serve[@]}" "${targets[@]}" --policy assure --policy fixed:sm_mhz=1005 --policy fixed:sm_mhz=300 "$@"; }
succeed "a comparison" 'saved %  TTFT p99 s  TBT p99 s +bound$' compare
succeed "and all of it" 'above static %  at most %' compare -o "$dir/t1.csv" --threads 1 --wide
for line in '^baseline:static [0-9]+ MHz' "saved % +energy saved against the driver's default" 'energy above the best static clock, % \[regret_static_pct\]' \
  'ttft_missed_pct<=1, tbt_missed_pct<=1' 'fixed:sm_mhz=300 breaks .*missed_pct<=1'; do
  check "it tells: $line" grep -qE "$line" "$dir/out"
done
column() { awk -F, -v name="$1" -v policy="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
  NR > 1 && $2 == policy && $1 != "mean" { print $at }' "$dir/t1.csv"; }
above=$(column regret_static_pct baseline:default)
check "the default is above the static clock, as in every table: $above" grep -qE "^baseline:default .* held +$(printf %.2f "$above") " "$dir/out"
compare -o "$dir/t2.csv" --threads 2 >/dev/null
check "the same on two threads" cmp "$dir/t1.csv" "$dir/t2.csv"
compare --json >"$dir/c.json"
check "valid JSON of a comparison" python3 -m json.tool "$dir/c.json" /dev/null
check "the best static clock saves nothing against itself" [ "$(column saving_static_pct baseline:static)" = 0 ]
check "whoever misses a target violates" [ "$(column violated fixed:sm_mhz=300)" = 1 ]
check "and the CSV says all the same what it saves" [ "$(column saving_static_pct fixed:sm_mhz=300)" != n/a ]
check "no regret of it" [ "$(column regret_static_pct fixed:sm_mhz=300)" = n/a ]
succeed "without targets" 'no latency is bounded' "$f" compare "${serve[@]}" --policy assure
"$f" compare "${serve[@]}" --policy assure --no-oracle --wide >"$dir/out"
check "without references no column of them" awk '/static|at most %/ { exit 1 }' "$dir/out"
succeed "a bound on a column of servers" 'tpot_p99_s<0.5' "$f" compare "${serve[@]}" --policy assure --bound 'tpot_p99_s<0.5'
succeed "a bound on what a watched run tells" 'over_gpu@390<90' "$f" compare "${serve[@]}" "${targets[@]}" --policy assure --bound 'over_gpu@390<90'
"$f" grid "${serve[@]}" "${targets[@]}" --policy assure --policy fixed:sm_mhz=1005 -o "$dir/sweep.csv" >"$dir/out" 2>&1
check "a sweep has the same columns" [ "$(head -n 1 "$dir/sweep.csv")" = "$(head -n 1 "$dir/t1.csv")" ]
for kind in serving serving-load; do
  check "plot $kind" "$f" plot $kind "$dir/t1.csv" -o "$dir/$kind.svg"
  check "which names its policies" grep -q 'fixed:sm_mhz=1005' "$dir/$kind.svg"
done
succeed "a page of servers" written "$f" report "$dir/t1.csv" -o "$dir/page.html"
check "shows what they save against the load" grep -q 'What a policy saves against the load: lines are means' "$dir/page.html"
succeed "without figures it has no such part" written "$f" report "$dir/t1.csv" -o "$dir/page.html" --no-figures
check "nor a way to it" test "$(grep -c 'id="load"\|href="#load"' "$dir/page.html")" = 0
awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "offered_rps") at = i } NR > 1 { $at = "" } 1' "$dir/t1.csv" >"$dir/idle.csv"
refuse "a picture of the load, of which nothing is known" 2 'nothing to draw' timeout 30 "$f" plot serving-load "$dir/idle.csv" -o "$dir/x.svg"
succeed "a page without loads" written timeout 60 "$f" report "$dir/idle.csv" -o "$dir/page.html"
check "has no such part" test "$(grep -c 'id="load"' "$dir/page.html")" = 0
check "plot latencies" "$f" plot latencies "$dir/served.csv" -o "$dir/l.svg"
check "plot timeline" "$f" plot timeline "$dir/time.csv" -o "$dir/t.svg"
check "which shows the queue" grep -q 'waiting' "$dir/t.svg"
refuse "a plot of servers from something else" 2 "no column 'policy', expected the file of foldline compare" "$f" plot serving "$dir/served.csv" -o "$dir/x.svg"

# ---- golden: the small case, every number of servers' columns ----
golden=tests/golden/serving.csv
made=$dir/golden.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(energy_j|energy_saving_pct|latency_p..?_s|ttft_|tbt_|tpot_|served_rps|goodput_rps|energy_per_|preemptions|worst_minute|saving_static_pct|sets|violated)/) keep[++n] = i }
  $1 != "mean" { line = $2; for (k = 1; k <= n; k++) line = line "," $keep[k]; print line }' "$dir/t1.csv" >"$made"
if [ "${FL_BLESS:-}" = 1 ]; then cp "$made" "$golden"; fi
check "the small case gives what it gave (FL_BLESS=1 writes it anew)" diff "$golden" "$made"

succeed "a report" written "$f" report "$dir/t1.csv" --no-figures -o "$dir/r.html"
check "sets who comes first beside the best static clock" grep -qE 'comes first: .* The best static clock saves (more: )?[0-9.]+ %\.' "$dir/r.html"

# ---- the oracle: clocks and servers ----
succeed "the best static clock of each number of servers" '^best: 1 server at [0-9]+ MHz' "$f" compare "${serve[@]}" "${targets[@]}" --servers 2
check "two of each" [ "$(grep -cE '^[12] +(default|[0-9]+ MHz)' "$dir/out")" = 4 ]
"$f" compare "${serve[@]}" "${targets[@]}" --json >"$dir/o.json"
check "valid JSON of the oracle" python3 -m json.tool "$dir/o.json" /dev/null
check "the oracle's clock is that of the comparison" [ "sm_mhz=$(value "$dir/o.json" best_sm_mhz)" = "$(column clock baseline:static)" ]
succeed "targets that nothing meets" 'no static clock holds all bounds' "$f" compare "${serve[@]}" --ttft 1ms

# ---- overload: the server keeps up with one request a second, not with forty ----
awk 'BEGIN { print "t_ns,prompt_tokens,output_tokens"; for (i = 0; i < 400; i++) printf "%.0f,100,50\n", i * 1e9 }' >"$dir/even.csv"
over=("$dir/s.csv" "$dir/even.csv" --platform a100)
succeed "a server that keeps up" '^TTFT' "$f" run "${over[@]}" --policy nvboost
check "is not called overloaded" bash -c "! grep -q overloaded '$dir/out'"
succeed "one that does not" '^note: overloaded: requests arrive faster than they are served; the last quarter of them waited' "$f" run "${over[@]}" \
  --policy nvboost --scale 40
succeed "a comparison says so too" 'note: 2 of 2 rows are overloaded' "$f" compare "${over[@]}" --policy nvboost --scale 40 --no-oracle
succeed "so does one without a policy" 'note: 2 of 2 rows are overloaded' "$f" compare "${over[@]}" --scale 40
"$f" run "${over[@]}" --policy nvboost --scale 40 --json >"$dir/over.json"
check "so does JSON" test "$(value "$dir/over.json" overloaded)" = true
sed 's/^[0-9]*,/0,/' "$dir/even.csv" >"$dir/once.csv"
succeed "all requests at once" '^TTFT' "$f" run "$dir/s.csv" "$dir/once.csv" --platform a100 --policy nvboost
check "are no overload" bash -c "! grep -q overloaded '$dir/out'"
awk 'BEGIN { print "t_ns,prompt_tokens,output_tokens"; for (i = 0; i < 1400; i++) printf "%.0f,100,50\n", (i < 320 ? i : i < 1320 ? 320 : i - 1000) * 1e9 }' >"$dir/burst.csv"
succeed "a burst that is served before the last requests" '^TTFT' "$f" run "$dir/s.csv" "$dir/burst.csv" --platform a100 --policy nvboost
check "is no overload either" bash -c "! grep -q overloaded '$dir/out'"

# ---- an experiment ----
cat >"$dir/e.json" <<'END'
{
  "foldline_experiment": 1,
  "platform": "a100",
  "serving": "s.csv",
  "requests": "r.csv",
  "ttft": "1s",
  "tbt": "150ms",
  "target_share": 0.95,
  "policies": ["assure"],
  "variants": {"late": {"actuator": "100ms"}, "twice": {"scale": 2, "servers": 2, "route": "least-loaded"}}
}
END
succeed "an experiment with variants of load and actuator" 'ttft_missed_pct<=5, tbt_missed_pct<=5' "$f" compare "$dir/e.json"
check "each is a workload" grep -q '\[late\]' "$dir/out"
succeed "a search under the targets" '^assumed: times at other clocks' "$f" search "$dir/e.json" --policy fixed:sm_mhz=1005 --policy fixed:sm_mhz=300 --tune '*' --score '*'
wrong() { sed "$2" "$dir/e.json" >"$dir/w.json" && refuse "$1" 2 "$3" "$f" compare "$dir/w.json"; }
wrong "a route that nobody knows" 's/least-loaded/least-laoded/' "did you mean 'least-loaded'"
wrong "a key that is nearly one" 's/"servers"/"server"/' "unknown key, expected \"servers\""
wrong "a target that is no time" 's/"1s"/"soon"/' "ttft: ttft 'soon', expected a time such as 2s"
wrong "an actuator that is no time" 's/"100ms"/"late"/' "actuator 'late', expected a time"
wrong "servers in a variant of what serves nothing" '/"serving"\|"requests"\|"ttft"\|"tbt"\|target_share/d' 'expected|nothing to replay'

# ---- advice: what the oracle found, as a command ----
asked=("$dir/r.csv" "$dir/s.csv" --platform a100 "${targets[@]}" --servers 2 --risk 100%)
succeed "advice at any risk" '^  set +nvidia-smi -lgc ' "$f" advise "${asked[@]}"
check "first what it assumes" bash -c "head -n 1 '$dir/out' | grep -q '^assumed: times at other clocks'"
check "it is the oracle's choice" grep -qE ": 1 server at $(value "$dir/o.json" best_sm_mhz) MHz instead of 2 at 1410 MHz\$" "$dir/out"
check "it says what clocks rest on" grep -q 'clocks were not measured' "$dir/out"
awk -F, -v OFS=, '{ print } /^[0-9]/ && !n++ { $2 = 0; print }' "$dir/r.csv" >"$dir/failed.csv"
succeed "a request that failed" '^  set +nvidia-smi -lgc ' "$f" advise "$dir/failed.csv" "${asked[@]:1}" --risk 5%
check "is told once, and not for each draw" test "$(grep -c 'failed.csv: 1 of .* rows without a value' "$dir/err")" = 1
"$f" advise "${asked[@]}" --json >"$dir/a.json"
check "valid JSON of the advice" python3 -m json.tool "$dir/a.json" /dev/null
check "the same clock" test "$(value "$dir/a.json" best_sm_mhz)" = "$(value "$dir/o.json" best_sm_mhz)"
succeed "advice where nothing meets the targets" 'no clock meets the targets, with up to 1 server$' "$f" advise "$dir/r.csv" \
  "$dir/s.csv" --platform a100 --ttft 1ms
two='[0-9]+ MHz, memory (500|1000) MHz'
succeed "advice on a board with two memory clocks names both" ": 1 server at $two instead of 1 at 1500 MHz, memory 1000 MHz\$" "$f" advise "$dir/r.csv" \
  "$dir/s.csv" --platform generic "${targets[@]}"
succeed "so does the oracle" "^best: 1 server at $two \\(" "$f" compare "${serve[@]/a100/generic}" "${targets[@]}"
refuse "advice without a target" 2 'expected --ttft TIME' "$f" advise "$dir/r.csv" "$dir/s.csv" --platform a100
printf '%s\n' TIMESTAMP,ContextTokens,GeneratedTokens '2023-11-16 18:15:46.6805900,374,44' '2023-11-16 18:15:50.9951690,396,109' >"$dir/azure.csv"
succeed "another tool's requests" nvboost "$f" run "$dir/s.csv" "$dir/azure.csv" --platform a100 --policy nvboost
refuse "advice for two request traces" 2 'expected one' "$f" advise "$dir/r.csv" "$dir/r.csv" "$dir/s.csv" --ttft 1s
refuse "advice without a platform" 2 'expected --platform' "$f" advise "$dir/r.csv" "$dir/s.csv" --ttft 1s
refuse "a slowdown beside targets" 2 '--bound has no effect' "$f" advise "${asked[@]}" --bound 5%
refuse "a risk that takes too many draws" 2 'expected at least 0.001 for a server' "$f" advise "${asked[@]}" --risk 1e-6

# ---- the margin: advice from one seed of arrivals holds for seven others, and for a law that is wrong ----
for seed in 1 2 3 4 5 6 7 8; do
  "$f" synth requests -o "$dir/seed$seed.csv" --seed "$seed" --rate 1 --requests 200 --prompt-most 500 >/dev/null
done
tight=(--platform a100 --ttft 1s --tbt 100ms)
advised() { # SERVER [OPTION...]
  "$f" advise "$1" "$dir/seed1.csv" "${tight[@]}" "${@:2}" --json >"$dir/a.json" && value "$dir/a.json" best_sm_mhz
}
met() { # SERVER CLOCK: seeds 2 to 8 that meet the targets
  for seed in 2 3 4 5 6 7 8; do "$f" run "$1" "$dir/seed$seed.csv" "${tight[@]}" --policy "fixed:sm_mhz=$2"; done | grep -c 'targets were met'
}
own=$(advised "$dir/s.csv" --risk 100%) safe=$(advised "$dir/s.csv")
check "the margin asks for a higher clock, $safe MHz" test "$safe" -gt "$own"
check "it holds for the other seeds" test "$(met "$dir/s.csv" "$safe")" = 7
check "without it, at $own MHz, some break" test "$(met "$dir/s.csv" "$own")" -le 5
check "the saving has a range" awk -v low="$(value "$dir/a.json" saving_low_pct)" -v high="$(value "$dir/a.json" saving_high_pct)" \
  'BEGIN { exit !(low > 0 && low < high) }'
(cat "$dir/s.csv"; echo time_error,,,0.1) >"$dir/unsure.csv"
awk -F, -v OFS=, '$1 ~ /^(host_s|host_seq.*|token|sequence|weights_s|kv_s|pair)$/ { $4 *= 1.1 } 1' "$dir/s.csv" >"$dir/slow.csv"
unsure=$(advised "$dir/unsure.csv")
check "a law that states an error asks for a higher clock, $unsure MHz" test "$unsure" -gt "$safe"
check "which holds where steps are 10 % slower" test "$(met "$dir/slow.csv" "$unsure")" = 7
succeed "the text says so" '^  margin +the targets broke in 0 of 20 draws of other arrivals and of the law.s error in time, 10 %$' "$f" advise \
  "$dir/unsure.csv" "$dir/seed1.csv" "${tight[@]}"
check "and what would do without it" grep -q "^  without the margin   1 server at $own MHz" "$dir/out"
# With pools a point of more energy may break where a cheaper one holds: a bisection over energies finds 1170 and 1245 MHz.
pair=("$f" advise "$dir/seed1.csv" --platform a100 --pools 1+1 --kv-bytes 131072)
ada=(traces/samples/serving/rtx4090-llama3.1-8b.serving.csv --ttft 300ms --tbt 50ms)
succeed "the cheapest pair of clocks that holds" ': the pools at 1170 MHz for prefill, 645 MHz for decode instead of 1410 MHz$' "${pair[@]}" "${ada[@]}"
check "a command for prefill" grep -q '^  set for prefill      nvidia-smi -lgc 1170,1170$' "$dir/out"
check "and one for decode" grep -q '^  set for decode       nvidia-smi -lgc 645,645$' "$dir/out"
"${pair[@]}" "${ada[@]}" --json >"$dir/a.json"
check "JSON has both" [ "$(sed -n 's/^.*"set.*":.*-lgc \([0-9,]*\)".*$/\1/p' "$dir/a.json" | xargs)" = '1170,1170 645,645' ]
succeed "a command also where only decode leaves the default" '^  set for decode +nvidia-smi -lgc 270,270$' "${pair[@]}" "$dir/s.csv" \
  --ttft 180ms --tbt 100ms
check "prefill keeps it" grep -q ': the pools at 1410 MHz for prefill, 270 MHz for decode instead of 1410 MHz$' "$dir/out"
sed '/^[0-9]/s/,[^,]*$/,1/' "$dir/seed1.csv" >"$dir/first.csv"
succeed "answers of one token have no time between tokens" '^  latencies            TTFT p99 [0-9.]* s; late: 0.00 % of first tokens$' "$f" advise \
  "$dir/s.csv" "$dir/first.csv" --platform a100 --ttft 1s
few='the requests are too few to draw other arrivals, expected at least 3$'
succeed "one request is too few for a margin" "^  margin +none: the law's error is unknown, and $few" "$f" advise "$dir/s.csv" \
  "$dir/one.csv" --platform a100 --ttft 1s
check "and for a range" grep -q '^  energy saved  *[0-9.]* %; ' "$dir/out"
succeed "the law's error is drawn all the same" "^  margin +the targets broke in 0 of 20 draws of the law's error in time, 10 %, and $few" \
  "$f" advise "$dir/unsure.csv" "$dir/one.csv" --platform a100 --ttft 1s

# ---- refused ----
run=("$f" run --platform a100 --policy nvboost)
refuse "requests without a server" 2 'r.csv:1: has requests, which a server answers' "${run[@]}" "$dir/r.csv"
refuse "a server without requests" 2 's.csv:1: is a server, expected the requests' "${run[@]}" "$dir/s.csv"
refuse "a target without a server" 2 '--ttft is of a server' "${run[@]}" traces/samples/inference.csv --ttft 2s
refuse "a share without a target" 2 'expected --ttft TIME or --tbt TIME' "${run[@]}" "${serve[@]}" --target-share 0.9
refuse "a trace beside a server" 2 'expected only one of them' "${run[@]}" "${serve[@]}" traces/samples/inference.csv
refuse "GPUs beside a server" 2 '--gpus .* has no effect' "${run[@]}" "${serve[@]}" --gpus 2
refuse "arrivals beside requests" 2 '--arrivals .* has no effect' "${run[@]}" "${serve[@]}" --arrivals poisson:rate=1,count=3
refuse "a name typed wrong" 2 "did you mean .--servers" "${run[@]}" --servrs 2
refuse "a route typed wrong" 2 "did you mean 'round-robin'" "${run[@]}" "${serve[@]}" --route round-robbin
refuse "a target typed wrong" 2 "ttft '2 sheep', expected a time" "${run[@]}" "${serve[@]}" --ttft '2 sheep'
refuse "a bound on what is not served" 2 'no server answers requests' "$f" compare traces/samples/inference.csv --platform a100 \
  --policy nvboost --bound 'ttft_p99_s<1'
refuse "no such file" 2 'nowhere.csv' "${run[@]}" nowhere.csv "$dir/r.csv"
broken() { # NAME FILE SED MESSAGE
  sed "$3" "$dir/$2.csv" >"$dir/bad.csv"
  if [ "$2" = s ]; then refuse "$1" 2 "$4" "${run[@]}" "$dir/bad.csv" "$dir/r.csv"
  else refuse "$1" 2 "$4" "${run[@]}" --strict "$dir/s.csv" "$dir/bad.csv"; fi
}
broken "requests out of order" r '4s/^[0-9]*/999999999999/' 'bad.csv:5:'
broken "no prompt" r '3s/,[0-9]*,/,0,/' 'bad.csv:3:'
broken "longer than the KV cache" r '3s/,[0-9]*,/,1000000,/' 'bad.csv:3:'
broken "a number of the law that nobody knows" s 's/^pair,/piar,/' "bad.csv:.*did you mean 'pair'"
broken "a server without KV blocks" s '/kv_blocks/d' 'kv_blocks'
broken "a law that gives no time" s '/^host_s\|^token\|^weights\|^host_seq\|^sequence\|^kv_s\|^pair/d' 'bad.csv'
refuse "a result over its input" 2 'is the same file' "${run[@]}" "${serve[@]}" --served "$dir/r.csv"
finish
