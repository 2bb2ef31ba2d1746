#!/usr/bin/env bash
# The real program end to end: program.sh PATH_TO_FOLDLINE. Scripts of one subject stand in tests/program/.
. "$(dirname "$0")/program/shell.sh"

# ---- help and names ----
for c in $("$f" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
  succeed "$c --help" "^foldline $c( |\$)" "$f" $c --help
done
succeed "--help" "Exit status" "$f" --help
check "no command" test "$("$f" >/dev/null 2>&1; echo $?)" = 2
check "the service's policy exists" "$f" list policies "$(sed -n 's/^Environment=POLICY=//p' harness/live/foldline.service)"
refuse "unknown command" 2 "did you mean 'compare'" "$f" comapre
refuse "unknown option" 2 "did you mean '--platform'" "$f" run --platfrom generic
refuse "a letter is told as it was typed" 2 "unknown option .-x., see --help" "$f" record -x y.csv
refuse "option without value" 2 "nothing follows" "$f" run --platform
refuse "number out of range" 2 "--bound 'x'" "$f" compare --bound x

trace=$dir/t.csv
succeed "synth" "2000 kernels" "$f" synth -o "$trace" --kernels 2000 --mean-us 3000 --seed 3
refuse "unknown policy" 2 "did you mean 'assure'" "$f" run "$trace" --platform generic --policy asure
refuse "unknown platform" 2 "did you mean 'generic'" "$f" run "$trace" --platform generix --policy assure
refuse "unknown parameter" 2 "did you mean 'theta'" "$f" run "$trace" --platform generic --policy assure --set thetta=1
refuse "parameter out of range" 2 "1.5.*expected" "$f" run "$trace" --platform generic --policy assure --set theta=1.5
refuse "parameter is no number" 2 "theta" "$f" run "$trace" --platform generic --policy assure --set theta=x
refuse "clock not on the ladder" 2 "ladder" "$f" run "$trace" --platform generic --policy fixed --set sm_mhz=1001
refuse "probe not on the ladder" 2 "ladder" "$f" run "$trace" --platform generic --policy assure --set probe_mhz=1001/1500
succeed "parameters after a colon" 'under assure:theta=0.8' "$f" run "$trace" --platform generic --policy assure:theta=0.8
refuse "unknown objective" 2 "did you mean 'edp'" "$f" compare "$trace" --platform generic --policy nvboost --objective edo
refuse "unknown format" 2 "did you mean 'geepafs'" "$f" verify "$trace" --format gepafs
refuse "unknown plot" 2 "did you mean 'pareto'" "$f" plot parreto "$trace" -o "$dir/x.svg"
refuse "no policy" 2 "expected --policy" "$f" run "$trace" --platform generic
refuse "no platform" 2 "expected --platform" "$f" run "$trace" --policy nvboost
refuse "nothing to run" 2 "expected a kernel trace" "$f" run --platform generic --policy nvboost

# ---- nothing is written over what was read ----
ln -s in.csv "$dir/link.csv"
in=$dir/in.csv
sed 's/^# kinds: .*/# kinds: t.kinds.csv/' "$dir/t.csv" >"$in"
cp "$in" "$dir/kept.csv"
cp "$dir/t.kinds.csv" "$dir/kept.kinds.csv"
refuse "compare over its trace" 2 "same file as" "$f" compare "$in" --platform generic --policy nvboost -o "$in"
refuse "by another way" 2 "same file as" "$f" compare "$in" --platform generic --policy nvboost -o "$dir/./link.csv"
refuse "over the kinds that it names" 2 "is an input" "$f" compare "$in" --platform generic --policy nvboost -o "$dir/t.kinds.csv"
refuse "a run's log over its trace" 2 "same file as" "$f" run "$in" --platform generic --policy nvboost --log "$in"
refuse "over the kinds" 2 "is an input" "$f" run "$in" --platform generic --policy nvboost --timeline "$dir/t.kinds.csv"
refuse "two outputs in one" 2 "same file as" "$f" run "$in" --platform generic --policy nvboost --log "$dir/new" --timeline "$dir/new"
refuse "a report over its results" 2 "same file as" "$f" report "$in" -o "$in"
refuse "a table that a policy reads" 2 "same file as" "$f" run "$in" --platform generic --policy ideal-static --set states="$in" --log "$in"
check "and they are as they were" cmp -s "$in" "$dir/kept.csv"
check "and the kinds too" cmp -s "$dir/t.kinds.csv" "$dir/kept.kinds.csv"
refuse "a plot over its trace" 2 "same file as" "$f" plot trace "$in" -o "$in"

# ---- a report keeps to the bound ----
"$f" compare harness/experiments/first-light.json --no-oracle -o "$dir/light.csv" >"$dir/out"
succeed "a report" "written" "$f" report "$dir/light.csv" -o "$dir/light.html"
check "names the best under the bound" grep -q '<strong>fixed:sm_mhz=1300</strong> comes first' "$dir/light.html"
check "and says how many break it" grep -q ' 3 that save more break a bound' "$dir/light.html"

# ---- sweeps that contradict themselves ----
printf 'workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\na,,1500,,,10,300,4000\na,,1500,,,12,300,3600\na,,900,,,16,150,2400\n' >"$dir/odd.csv"
succeed "a sweep that contradicts itself runs" 'nvboost' "$f" compare "$dir/odd.csv" --platform generic --policy nvboost
check "and says that energy is not power x time" grep -q '1 settings whose energy_j is not power_w x time_s, by up to +33 % (line 2)' "$dir/err"
check "and that a setting is there twice" grep -q '1 rows repeat a setting: each setting is the mean of its rows' "$dir/err"

# ---- options that would do nothing ----
for o in "--repeat 3" "--model fitted" "--seconds 3" "--workload a"; do
  for c in "run --policy nvboost" "compare --policy nvboost" "compare"; do
    # shellcheck disable=SC2086
    refuse "$o beside a trace, $c" 2 "${o%% *} has no effect without" "$f" $c "$trace" --platform generic $o
  done
done
refuse "--seconds beside a sweep" 2 'seconds has no effect without programs' "$f" compare "$dir/odd.csv" --platform generic --policy nvboost --seconds 3
succeed "what an experiment says of its own workloads is not about a trace" 'nvboost' "$f" compare harness/experiments/mf-gpoeo-short.json "$trace" --policy nvboost --no-oracle
refuse "fixed without a clock" 2 'nothing to set, expected a clock' "$f" run "$trace" --platform generic --policy fixed
refuse "fixed without a clock, compared" 2 'nothing to set' "$f" compare "$trace" --platform generic --policy fixed
succeed "a run shorter than the policy's period" 'note: the run ended before assure looked a second time' \
  "$f" run traces/samples/launches.csv --platform generic --policy assure
succeed "and compared" 'note: 2 runs ended before their policy looked a second time' \
  "$f" compare traces/samples/launches.csv --platform generic --policy assure --policy maxfreq --policy utilizscale
check "which maxfreq need not" sh -c '! "$0" run traces/samples/launches.csv --platform generic --policy maxfreq | grep -q "second time"' "$f"

# ---- choices that cannot hold ----
"$f" synth -o "$dir/four.csv" --kernels 400 --gpus 4 >"$dir/out"
refuse "a budget below all limits" 2 "go down to 400 W together" "$f" run "$dir/four.csv" --platform generic --policy nvboost --gpu-budget 300
succeed "a budget that can hold" "energy" "$f" run "$dir/four.csv" --platform generic --policy nvboost --gpu-budget 400

# ---- bad input ----
head_='device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z'
make() { # file, header, rows...
  local file=$1 header=$2
  shift 2
  { printf '# foldline-kernels 1\n%s\n' "$header"; printf '%s\n' "$@"; } >"$dir/$file"
}
run_bad() { # NAME PATTERN FILE
  refuse "$1" 2 "$2" "$f" run "$dir/$3" --platform generic --policy nvboost --assume memory
}
make torn.csv "$head_" '0,0,0,0,10,k,1,1,1,1,1,1' '0,0,0,20,30,k'
run_bad "torn row" 'torn.csv:4:[0-9]+: .*6 fields, expected 12' torn.csv
make header.csv "${head_/end_ns/end_nx}" '0,0,0,0,10,k,1,1,1,1,1,1'
run_bad "wrong header" "header.csv:2:[0-9]+: .*end_ns" header.csv
make negative.csv "$head_" '0,0,0,10,5,k,1,1,1,1,1,1'
run_bad "negative duration" 'negative.csv:3:[0-9]+: ' negative.csv
make overlap.csv "$head_" '0,0,0,0,10,k,1,1,1,1,1,1' '0,0,0,5,15,j,1,1,1,1,1,1'
refuse "overlapping kernels in one stream" 2 'overlap.csv:4:[0-9]+: .*overlap' "$f" run "$dir/overlap.csv" --platform generic --policy nvboost --strict
make text.csv "$head_" '0,0,0,zero,10,k,1,1,1,1,1,1'
run_bad "text for a number" 'text.csv:3:7: ' text.csv
make none.csv "$head_"
run_bad "no row" 'none.csv' none.csv
: >"$dir/empty.csv"
run_bad "empty file" 'empty.csv' empty.csv
run_bad "missing file" 'missing.csv' missing.csv
mkdir "$dir/folder.csv"
run_bad "a directory" 'folder.csv: .*directory' folder.csv
head -c 100000 /dev/urandom >"$dir/rubbish.csv"
run_bad "binary rubbish" 'rubbish.csv' rubbish.csv
mkfifo "$dir/long.csv" # so that the gigabyte never lies on a disk
huge=$([ -n "${FL_NIGHTLY:-}" ] && echo 1000000000 || echo 100000000)
{ printf '# foldline-kernels 1\n%s\n' "$head_"; head -c "$huge" /dev/zero | tr '\0' 'a'; } >"$dir/long.csv" 2>/dev/null &
run_bad "a line of 100 MB, nightly of 1 GB" 'long.csv:3:[0-9]+: .*longer' long.csv
wait $!
rm -f "$dir/long.csv"
printf '# foldline-kernels 9\n%s\n' "$head_" >"$dir/version.csv"
run_bad "another version" 'version.csv:1:' version.csv
printf '{"foldline_platform": 1,\n "title": }' >"$dir/broken.json"
refuse "broken platform" 2 'broken.json:2:[0-9]+: ' "$f" run "$trace" --platform "$dir/broken.json" --policy nvboost
sed 's/"tdp_w"/"tpd_w"/' models/platforms/generic.json >"$dir/key.json"
refuse "wrong key in a platform" 2 "key.json:[0-9]+:[0-9]+: .*tpd_w" "$f" run "$trace" --platform "$dir/key.json" --policy nvboost
printf '{"foldline_experiment": 1, "platfrom": "generic"}' >"$dir/wrong.json"
for c in compare search regress "grid -o $dir/no.csv"; do
  # shellcheck disable=SC2086
  refuse "$c without its experiment" 2 'nosuch.json: cannot open' "$f" $c "$dir/nosuch.json"
done
refuse "no platform file" 2 'nosuch.json: cannot open' "$f" run "$trace" --platform "$dir/nosuch.json" --policy nvboost
refuse "wrong key in an experiment" 2 "wrong.json:[0-9]+:[0-9]+: .*platform" "$f" compare "$dir/wrong.json"
sweep_=workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
printf '%s\nw,,900,,,-1,5,5\n' "$sweep_" >"$dir/sweep.csv"
refuse "sweep with a negative time" 2 'sweep.csv:2:[0-9]+: ' "$f" compare "$dir/sweep.csv" --platform generic --policy nvboost

make sync.csv "$head_,launch_ns,host_thread" '0,0,0,20000,320000,k,1,1,1,1,1,1,5000,0' '0,0,0,330000,3400000000000000000,[sync],,,,,,,,0'
for p in nvboost assure depo; do
  refuse "a synchronisation of a century under $p" 2 'sync.csv: .*expected 0 to 25 hours' "$f" run "$dir/sync.csv" --platform generic --policy $p --assume memory
done
{ echo "$sweep_"; seq -f 'a,,%.3f,,,10,150,' 1000.001 0.001 1200; } >"$dir/many.csv" # compared row with row, they would take hours
refuse "200,000 settings of one workload" 2 'many.csv:4098: more than 4096 settings' "$f" run "$dir/many.csv" --platform generic --policy nvboost
rm -f "$dir/many.csv"
printf '%s\na,,900,,,1e10,5,5e10\n' "$sweep_" >"$dir/sweep.csv"
refuse "a measurement of centuries" 2 'sweep.csv:2: time_s is 1e.10, expected at most 26 days' "$f" run "$dir/sweep.csv" --platform generic --policy nvboost

# ---- output that cannot be written ----
unwritten "no such folder" '^nvboost' "$f" compare "$trace" --platform generic --policy nvboost -o "$dir/nowhere/x.csv"
refuse "synth into no folder" 3 'nowhere' "$f" synth -o "$dir/nowhere/x.csv"
check "a full output of the help is noticed" test "$("$f" --help >/dev/full 2>/dev/null; echo $?)" = 3
check "a full output is noticed" test "$("$f" list policies >/dev/full 2>/dev/null; echo $?)" = 3
check "nothing half-done is left" test -z "$(find "$dir" -name '*.part*' -o -name '*.tmp*')"

# ---- the same bytes ----
compare() { "$f" compare "$trace" --platform generic --bound 0.1 --policy nvboost --policy utilizscale --policy assure --seeds 2 "$@"; }
for n in 1 2 4; do compare --threads $n -o "$dir/c$n.csv" >"$dir/table$n" || bad "compare with $n threads"; done
check "1 and 2 threads: same bytes" cmp "$dir/c1.csv" "$dir/c2.csv"
check "1 and 4 threads: same bytes" cmp "$dir/c1.csv" "$dir/c4.csv"
compare -o "$dir/again.csv" >/dev/null
check "two runs: same bytes" cmp "$dir/c1.csv" "$dir/again.csv"
"$f" synth -o "$dir/t2.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null
check "synth twice: same kernels" cmp <(grep -v '^#' "$trace") <(grep -v '^#' "$dir/t2.csv")
draws() { "$f" compare harness/experiments/mf-gpoeo-short.json --policy mf-gpoeo --workload AI_FE --seconds 40 --no-oracle "$@"; }
draws --threads 1 -o "$dir/d1.csv" >/dev/null && draws --threads 3 -o "$dir/d3.csv" >/dev/null || bad "drawn applications"
check "drawn applications, 1 and 3 threads: same bytes" cmp "$dir/d1.csv" "$dir/d3.csv"
rows_of() { awk -F, -v d="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["draw"] == d' "$dir/d1.csv"; }
check "each draw has its rows" test "$(rows_of 1 | wc -l)-$(rows_of 101 | wc -l)" = 3-3
check "and its own applications" test "$(rows_of 1 | cut -d, -f3)" != "$(rows_of 101 | cut -d, -f3)"
check "activity records at cost, and free beside it" test "$(rows_of 1 | cut -d, -f2 | tr '\n' ' ')" = \
  'baseline:default mf-gpoeo mf-gpoeo (records free) '
check "provenance says which draw" grep -q '"applications_seed":.*"101"' "$dir/d1.provenance.json"
check "and what records cost" grep -q '"records_slowdown_pct":.*2' "$dir/d1.provenance.json"
check "provenance names its keys" grep -q '"policy_archive_sha256":.*"[0-9a-f]\{64\}"' "$dir/c1.provenance.json"
for key in foldline libc seed inputs sha256 parameters theta model_time_mape_pct; do
  check "provenance: $key" grep -q "\"$key\"" "$dir/c1.provenance.json"
done
check "columns of the CSV" test "$(head -n 1 "$dir/c1.csv" | cut -d, -f1-13)" = \
  workload,policy,energy_j,makespan_s,mean_power_w,slowdown,worst_window_slowdown,regret_static_j,regret_static_pct,regret_clairvoyant_pct,regret_at_own_slowdown_j,violated,switches
check "means at the end" grep -q '^mean,assure,' "$dir/c1.csv"
check "the best static clock has no regret" awk -F, '$2 == "baseline:static" && $8 != 0 {exit 1}' "$dir/c1.csv"

# ---- runs replay without a difference ----
"$f" synth -o "$dir/four.csv" --kernels 4000 --streams 4 --mean-us 800 --seed 5 >/dev/null
"$f" synth -o "$dir/two.csv" --kernels 4000 --gpus 2 --streams 2 --launches --mean-us 800 --seed 6 >/dev/null
for p in fixed:sm_mhz=1200 nvboost maxfreq efficientfix utilizscale assure sweetspot skeleton; do
  for t in t four two; do
    name=${p%%:*} set=${p#*:}
    if ! "$f" run "$dir/$t.csv" --platform generic --policy "$name" ${set:+$([ "$set" != "$p" ] && echo --set "$set")} \
      --log "$dir/log.csv" >/dev/null 2>"$dir/err"; then
      bad "run $p on $t" "$(cat "$dir/err")"
      continue
    fi
    succeed "replay of $p on $t" '"differ":0' "$f" verify "$dir/log.csv" --json
  done
done
"$f" run "$trace" --platform generic --policy assure --log "$dir/log.csv" >/dev/null
"$f" run "$trace" --platform generic --policy assure --log "$dir/log2.csv" --probes "$dir/probes.csv" >/dev/null
check "probes: a value for each step and GPU" awk -F, 'NR == 1 { ok = $1 == "t_ns" && NF > 5 } NR > 1 && NF < 6 { ok = 0 }
  { for (i = 3; i <= NF; i++) n += $i != "" } END { exit !(ok && NR > 20 && n > 20) }' "$dir/probes.csv"
check "two logs: same bytes" cmp "$dir/log.csv" "$dir/log2.csv"
"$f" verify "$dir/log.csv" --set lowest_mhz=1500 >"$dir/out" 2>&1
check "another parameter differs, exit 1" test $? = 1
check "and says where first" grep -q "first at .*log.csv:[0-9]" "$dir/out"
head -c -7 "$dir/log.csv" >"$dir/torn-log.csv"
"$f" verify "$dir/torn-log.csv" >"$dir/out" 2>"$dir/err"
check "a torn log replays, its end reported" grep -q 'torn-log.csv:[0-9]*: the last row is incomplete and was left out' "$dir/err"

# A log as the GEEPAFS daemon writes it, two idle GPUs: up and down the probe clocks, then the efficient clock: idle GPUs show no memory use and their cap lies below it.
{
  printf 'Apply policy: Assure\nMACHINE v100-maxq\nGPU freqset tool start..\nReset GPU frequency for: device 0. device 1. \nMain loop start..\n'
  i=0
  for set in 855 1050 1245 1440 1440 1245 1050 855 855 855 -1 -1; do
    printf '2023-1-1 0:0:%d, 0, 0, 45000, 855, %s, 0, 0, 45000, 855, %s, 20000\n' $i "$set" "$set"
    i=$((i + 1))
  done
  printf '2023-1-1 0:0:13, 0, 0, 450'
} >"$dir/daemon.log"
"$f" verify "$dir/daemon.log" --format geepafs --platform v100-163w --policy assure --set theta=0.9 --json >"$dir/out" 2>"$dir/err"
status=$?
check "daemon log: every GPU of every whole row, torn end reported" grep -q '"decisions":24,.*"torn_line":18' "$dir/out"
check "daemon log: decides as the rules say" test $status = 0
sed 's/1245, 0, 0, 45000, 855, 1245/1245, 0, 0, 45000, 855, 1440/' "$dir/daemon.log" >"$dir/daemon2.log"
"$f" verify "$dir/daemon2.log" --format geepafs --platform v100-163w --policy assure --set theta=0.9 >"$dir/out" 2>/dev/null
check "a changed row is found" grep -q 'GPU 1: sm_mhz recorded 1440, decided 1245' "$dir/out"

# ---- a table of any shape becomes a sweep ----
printf 'app,input,MHz,ms,W\nfft,1k,1005,2.5,90\nfft,1k,1410,2.0,120\n' >"$dir/table.csv"
map='workload=app+input,sm_mhz=MHz,time_s=ms/1000,power_w=W'
succeed "import --map" '2 measured settings' "$f" import "$dir/table.csv" --map "$map" -o "$dir/table.sweep.csv"
check "where they come from" grep -qx "# source: table.csv, imported with --map $map" "$dir/table.sweep.csv"
check "the mapped rows" grep -qx 'fft.1k,,1410,,,0.002,120,0.24' "$dir/table.sweep.csv"
refuse "a column that is not there" 2 "table.csv:1:1: no column 'mhz' for sm_mhz" "$f" import "$dir/table.csv" --map "workload=app,sm_mhz=mhz"
refuse "a unit that is wrong" 2 "table.csv:2:13: energy_j is 1000 times" "$f" import "$dir/table.csv" --map "$map,energy_j=ms*90" --strict
printf 'program,900,1000\nfft,0.9,1.0\nlu,0.95,1.0\n' >"$dir/wide.csv"
wide='workload=program,sm_mhz=header,time_s=1/cells,power_w=100'
succeed "import of a wide table" '4 measured settings' "$f" import "$dir/wide.csv" --map "$wide" -o "$dir/wide.sweep.csv"
printf 'program,900,1000,900\nfft,0.9,1.0,1\n' >"$dir/wide.csv"
refuse "a clock twice in a wide table" 2 "wide.csv:1:18: column '900' is given twice" "$f" import "$dir/wide.csv" --map "$wide"
printf 'frequency(MHz),900,1000\nfft,0.9,1.0\n' >"$dir/gpu_performance.csv"
printf 'frequency(MHz),900,1000\nfft,90,100\n' >"$dir/gpu_power.csv"
succeed "import of a public wide table" 'power is from .*gpu_power.csv' "$f" import "$dir/gpu_performance.csv" -o "$dir/gpu.sweep.csv"
check "both of its files" grep -q '^fft,,1000,,,1,100,100$' "$dir/gpu.sweep.csv"
refuse "its power alone" 2 "without its table of times" "$f" import "$dir/gpu_power.csv"
refuse "two tables" 2 "expected one file" "$f" import "$dir/table.csv" "$dir/table.csv" --map "$map"

# ---- a device from sweeps: its law. Columns of activity are read, and change no fit. ----
awk 'BEGIN { print "workload,sm_mhz,mem_mhz,time_s,power_w,dram_active_pct"
  for (k = 0; k < 14; k++) for (f = 700; f <= 1500; f += 200) { m = k / 14; t = (1 - m) * 1500 / f + m
    printf "w%d,%d,877,%.6f,%.4f,%.3f\n", k, f, t, 60 + 60 * (1 - m) * f / 1000 + 90 * m / t, 80 * m / t } }' >"$dir/active.csv"
succeed "fit device says which law" 'law of the calibration: .* left out' "$f" fit device "$dir/active.csv" -o "$dir/active.json"
cut -d, -f1-5 "$dir/active.csv" >"$dir/inactive.csv"
"$f" fit device "$dir/inactive.csv" -o "$dir/inactive.json" >"$dir/out"
for at in sm=1500 ends; do
  for it in active inactive; do
    "$f" fit workload --device "$dir/$it.json" "$dir/$it.csv" --at "$at" --json >"$dir/$it.out"
  done
  check "the same prediction from $at with and without activities" cmp "$dir/active.out" "$dir/inactive.out"
done
sed '2s/,[^,]*$/,130/' "$dir/active.csv" >"$dir/active2.csv"
refuse "an activity above 100 %" 2 "active2.csv:2:.*dram_active_pct" "$f" fit device "$dir/active2.csv" -o /dev/null --strict

# ---- a sensor is learnt back from its log and the truth ----
"$f" synth -o "$dir/steps.csv" --kernels 60 --mean-us 300000 --seed 4 >/dev/null
"$f" run "$dir/steps.csv" --platform generic --policy maxfreq --telemetry "$dir/steps.log" --timeline "$dir/steps.meter.csv" --every-ms 2 >/dev/null
succeed "fit sensor" 'the mean of 100 ms' "$f" fit sensor "$dir/steps.log" --meter "$dir/steps.meter.csv" -o "$dir/steps.json"
check "its rows" test "$(tr -d ' \t\n' <"$dir/steps.json")" = '{"gpu":{"sensors":{"power":{"refresh_ms":100,"window_ms":100,"quantum":0.001}}}}'
succeed "fit sensor without a meter" 'a log alone does not determine' "$f" fit sensor "$dir/steps.log"
printf 't_ms,power_w\n0,1\n0,2\n' >"$dir/meter.csv"
refuse "a meter whose time stands still" 2 "meter.csv:3:1: the time does not rise" "$f" fit sensor "$dir/steps.log" --meter "$dir/meter.csv" --strict
printf 't_ms,power_w\n0,1\n1,2\n' >"$dir/meter.csv"
refuse "a meter of something else" 2 "does not follow the log" "$f" fit sensor "$dir/steps.log" --meter "$dir/meter.csv"
refuse "a signal that is not there" 2 "did you mean 'power_w'" "$f" fit sensor "$dir/steps.log" --signal powr_w

# ---- the law of a power limit is learnt back from steps of it ----
"$f" synth -o "$dir/hot.csv" --kernels 2500 --kinds 1 --memory 0 --mean-us 10000 --platform v100-300w >/dev/null
printf 't_ns,watts\n0,290\n4000000000,160\n8000000000,290\n12000000000,150\n16000000000,280\n' >"$dir/target.csv"
"$f" run "$dir/hot.csv" --platform v100-300w --policy gridpilot:kp=0,ki=0,kd=0 --target "$dir/target.csv" --timeline "$dir/limits.csv" --every-ms 5 >/dev/null 2>&1
succeed "fit power-limit" 'each 20.* ms the clock is multiplied by .*limit / power' "$f" fit power-limit "$dir/limits.csv" -o "$dir/wall.json"
check "its rows" grep -q '"rise_mhz":[[:space:]]*135' "$dir/wall.json"
refuse "a log without limits" 2 "no power_limit_w, expected power_w, sm_mhz and power_limit_w" "$f" fit power-limit "$dir/steps.log"
refuse "a limit that does not move" 2 "no step of the limit that the clock follows" "$f" fit power-limit "$dir/steps.meter.csv"

# ---- a GPU without measurements ----
if [ -n "${FL_NIGHTLY:-}" ]; then
  echo '{"name": "My GPU", "sm_mhz": {"from": 210, "to": 1410, "steps": [15]}, "mem_mhz": [1593], "tdp_w": 400}' >"$dir/facts.json"
  succeed "fit device of facts" 'written: ' "$f" fit device --facts "$dir/facts.json" -o "$dir/mine.json"
  succeed "a device of facts is a platform" 'My GPU, never measured' "$f" list platforms "$dir/mine.json"
fi
echo '{"sm_mhz": [1410, 210], "mem_mhz": [1593], "tdp_w": 400}' >"$dir/facts.json"
refuse "a ladder that falls" 2 'facts.json:1:19: .*ascending' "$f" fit device --facts "$dir/facts.json" -o "$dir/mine.json"
succeed "fit workload without a device" 'two laws of each workload.s own rows' "$f" fit workload traces/samples/energyucb-table1.csv --at sm=1100,1600

# ---- measured settings come out again ----
{
  echo "$sweep_"
  for m in 757,130,90 952,115,110 1140,106,135 1335,102,165 1530,100,210; do
    IFS=, read -r mhz time power <<<"$m"
    echo "a,,$mhz,877,,$time,$power,"
    echo "b,,$mhz,877,,$((time * 2)),$((power + 20)),"
    echo "c,,$mhz,877,,$((time * time / 100)),$((power - 10)),"
  done
} >"$dir/sweep.csv"
printf '%s\na,,1140,877,,100,150,\n' "$sweep_" >"$dir/one.csv"
args=()
for mhz in 757 952 1140 1335 1530; do args+=(--policy fixed:sm_mhz=$mhz); done
succeed "compare over a sweep" 'mean over 3 workloads' "$f" compare "$dir/sweep.csv" --platform v100-300w --bound 0.05 \
  "${args[@]}" -o "$dir/sweep-out.csv"
check "fixed clocks give each measured energy and time to 0.1 %" awk -F, '
  function off(a, b) { return a > b ? a / b - 1 : b / a - 1 }
  NR == FNR { if (FNR > 1) { t[$1 " " $3] = $6; p[$1 " " $3] = $7 } next }
  $2 ~ /^fixed/ && $1 != "mean" { split($2, k, "="); i = $1 " " k[2]; n++
    if (off($4, t[i]) > 0.001 || off($3, t[i] * p[i]) > 0.001) { print $1, $2, $3, $4; bad = 1 } }
  END { exit bad || n != 15 }' "$dir/sweep.csv" "$dir/sweep-out.csv"
check "n/a where the bound is violated, a number at the own slowdown" awk -F, '
  $12 == 1 && $1 != "mean" { n++; if ($8 != "n/a" || $9 != "n/a" || $10 != "n/a" || $11 == "n/a") exit 1 } END { exit !n }' "$dir/sweep-out.csv"
succeed "the same by fitted laws" 'mean over 3 workloads' "$f" compare "$dir/sweep.csv" --platform v100-300w --model fitted --policy assure
succeed "how sure a static clock is" 'chance that the real GPU breaks the bound' "$f" compare --wide "$dir/sweep.csv" --platform v100-300w --model fitted \
  --bound 10% --risk 5% --policy assure -o "$dir/sure.csv"
check "of the best static clock alone" awk -F, '
  NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
  $1 != "mean" { stated = $c["bound_break_chance"] != "n/a" && $c["bound_break_chance"] <= 0.05
    if (stated != ($2 == "baseline:static")) exit 1; n += stated } END { exit n != 3 }' "$dir/sure.csv"
succeed "oracle by fitted laws" 'breaks the bound with a chance of' "$f" compare "$dir/sweep.csv" --platform v100-300w --model fitted --bound 0.1 --risk 0.05
refuse "a risk beside a table" 2 'sweep.csv: a: --risk needs the error of the model, which is unknown' "$f" compare "$dir/sweep.csv" \
  --platform v100-300w --bound 0.1 --risk 0.05 --policy assure
refuse "a risk beside a trace" 2 'needs the error of the model, which is unknown' "$f" compare "$trace" --platform generic --bound 0.05 --risk 0.05
refuse "a risk without a bound" 2 'expected --bound as well' "$f" compare "$dir/sweep.csv" --platform v100-300w --model fitted --risk 0.05
refuse "one setting and no calibration" 2 'one.csv: no workload has two settings' "$f" compare "$dir/one.csv" --platform v100-300w \
  --model fitted --policy assure

# ---- one clock for what was measured ----
succeed "advise on a sweep" 'chance that the bound breaks' "$f" advise "$dir/sweep.csv" --bound 10%
succeed "advise on several workloads undoes too" '^  undo +nvidia-smi -rgc' "$f" advise "$dir/sweep.csv" --bound 10%
succeed "with a platform" 'at 757 to 1530 MHz' "$f" advise "$dir/sweep.csv" --platform v100-300w --bound 0.10
check "5% is 0.05" cmp -s <("$f" advise "$dir/sweep.csv" --bound 5% --json) <("$f" advise "$dir/sweep.csv" --bound 0.05 --json)
succeed "on one setting" 'all kernels bound by compute' "$f" advise "$dir/one.csv" --platform v100-300w
refuse "on one setting alone" 2 'one.csv: no workload has two settings' "$f" advise "$dir/one.csv"
"$f" run "$trace" --platform generic --policy fixed:sm_mhz=1500 --telemetry "$dir/w@1500.log" >/dev/null
"$f" run "$trace" --platform generic --policy fixed:sm_mhz=1000 --telemetry "$dir/w@1000.log" >/dev/null
succeed "on a log" 'undo +nvidia-smi -rgc|as it is' "$f" advise "$dir/w@1500.log" --platform generic --bound 0.2
succeed "on logs at two clocks" '1020 MHz instead of 1500' "$f" advise "$dir/w@1500.log" "$dir/w@1000.log" --bound 0.5
succeed "on kernels" 'the times of its kernels and the file of its kernel classes' "$f" advise "$trace" --platform generic
succeed "on kernels and a log" 'W at 1500 MHz' "$f" advise "$trace" "$dir/w@1500.log" --platform generic
refuse "on a log without a platform" 2 'expected --platform NAME' "$f" advise "$dir/w@1500.log"
succeed "on an experiment" 'foldline live --policy' "$f" advise harness/experiments/first-light.json
sed "s|\"\.\./\.\./|\"$PWD/|; s|\"fixed\", |&\"label\": \"my best\", |" harness/experiments/first-light.json >"$dir/labelled.json"
succeed "on an experiment's label" "live --policy 'fixed:sm_mhz=1300' --control" "$f" advise "$dir/labelled.json"
refuse "advise on nothing" 2 'no file given' "$f" advise
refuse "advise on two sweeps" 2 'a second sweep' "$f" advise "$dir/sweep.csv" "$dir/one.csv"
refuse "advise with an unknown platform" 2 "did you mean 'v100-300w'" "$f" advise "$dir/sweep.csv" --platform v100-300
refuse "advise with an unknown option" 2 "did you mean '--bound'" "$f" advise "$dir/sweep.csv" --bond 5%
refuse "a bound that is no share" 2 "expected a number" "$f" advise "$dir/sweep.csv" --bound 5x
refuse "an unknown command" 2 "did you mean 'advise'" "$f" advice
for c in advise "compare --platform v100-300w --model fitted --policy assure"; do
  # shellcheck disable=SC2086
  {
    printf 'workload,sm_mhz,time_s,power_w,energy_j\na,900,2,100,200\na,1200,1.5,150,225000\n' >"$dir/bad.csv"
    refuse "a unit that is wrong" 2 'bad.csv:3:[0-9]+: energy_j is 1000 times' "$f" $c "$dir/bad.csv" --strict
    printf 'workload,sm_mhz,time_s,power_w,time_s\na,900,2,100,2\n' >"$dir/bad.csv"
    refuse "a column twice" 2 'bad.csv:1:[0-9]+: .*time_s' "$f" $c "$dir/bad.csv"
    printf 'workload,sm_mhz,time_s,power_w\na,900,2,100\na,1200,1.5,150\na,900,4,100\n' >"$dir/bad.csv"
    refuse "a clock twice with other times" 2 'bad.csv:4:1: a at 900 MHz took 4 s, and 2 s in line 2' "$f" $c "$dir/bad.csv"
    printf 'workload,sm_mhz,time_s,power_w\na,900,2,100\na,1200,1.5,-150\n' >"$dir/bad.csv"
    refuse "a negative power" 2 'bad.csv:3:[0-9]+: power_w' "$f" $c "$dir/bad.csv" --strict
  }
done
refuse "unknown workload" 2 "no workload 'd'" "$f" run "$dir/sweep.csv" --workload d --platform v100-300w --policy assure

# ---- power limits, and rows that lie about their clock ----
# P = 40 + 0.00008 f^2, T = 15000/f + 2; limits of 100 and 140 W hold the mean power at 0.96 of them.
awk 'BEGIN { print "workload,sm_mhz,power_cap_w,time_s,power_w"
  for (k = 1; k <= 4; k++) for (f = 600; f <= 1500; f += 100) for (l = 100; l <= 180; l += 40) {
    p = 40 + 0.00008 * f * f; g = f
    if (p > 0.96 * l) { p = 0.96 * l; g = sqrt((p - 40) / 0.00008) }
    printf "w%d,%d,%d,%.6g,%.6g\n", k, f, l, k * (15000 / g + 2), p } }' >"$dir/limits.csv"
succeed "fit device over limits" 'rows left out, since a power limit binds' "$f" fit device "$dir/limits.csv" -o "$dir/limits.json"
check "its limits are the sweep's" grep -q '"max_w":[[:space:]]*180' "$dir/limits.json"
succeed "fit workload under limits" '^capped ' "$f" fit workload --device "$dir/limits.json" "$dir/limits.csv" --at ends --rows "$dir/limits.out.csv"
check "each with its limit" grep -q '^w1,,100,1500,' "$dir/limits.out.csv"
refuse "a crest that is none" 2 'expected run, device, or the mean power divided by the limit' "$f" fit workload --device "$dir/limits.json" "$dir/limits.csv" --crest 2
sed 's/^\(w2\),1000,180,[^,]*,/\1,1000,180,48,/' "$dir/limits.csv" >"$dir/lies.csv"
succeed "a row that is out of line" 'lies.csv:[0-9]*: w2 at 1000 MHz: out of line' "$f" fit device "$dir/lies.csv" -o "$dir/lies.json"
{ echo "workload,power_cap_w,time_s,power_w"; awk -F, '$2 == 1500 { print $1 "," $3 "," $4 "," $5 }' "$dir/limits.csv"; } >"$dir/only.csv"
succeed "limits without clocks" 'written: ' "$f" fit device "$dir/only.csv" --base "$dir/limits.json" -o "$dir/only.json"
succeed "along the limits" '^capped ' "$f" fit workload "$dir/only.csv" --at ends
check "a limit to measure" grep -q '^note: measure next: w[0-9]*: a run under a power limit of [0-9]* W' "$dir/out"

# ---- the parts of a node ----
succeed "a mix of programs" 'of 8 programs' "$f" synth --mix traces/samples/mix8.kinds.csv --seconds 2 --mean-us 20000 --platform rtx4070-laptop -o "$dir/mix.csv"
succeed "run side by side" 'processes +0: ' "$f" run "$dir/mix.csv" --platform rtx4070-laptop --policy maxfreq
succeed "heat" '^heat +[0-9.]+ C' "$f" run "$dir/mix.csv" --platform rtx4070-laptop --policy maxfreq --heat --units 3
succeed "no wall, no CPU" 'makespan' "$f" run "$dir/mix.csv" --platform rtx4070-laptop --policy maxfreq --wall off --no-cpu --no-interference
succeed "a budget of several GPUs" 'makespan' "$f" run "$trace" --platform generic --gpus 2 --gpu-budget 250 --policy maxfreq
succeed "a fault that a run survives" 'sets were refused' "$f" run "$trace" --platform generic --policy maxfreq --fault refuse:gpu=all,control=sm_mhz
refuse "a wall of no kind" 2 "no --wall 'idael', did you mean 'ideal'" "$f" run "$trace" --platform generic --policy maxfreq --wall idael
refuse "a budget without walls" 2 'no wall that could hold its share' "$f" run "$trace" --platform generic --policy maxfreq --gpu-budget 250 --wall off
refuse "an APU without its CPU" 2 'is an APU, so its CPU cannot be left out' "$f" run "$trace" --platform apu-a10-5800k --policy maxfreq --no-cpu
refuse "a fault of no kind" 2 "did you mean 'freeze'" "$f" run "$trace" --platform generic --policy maxfreq --fault freze:gpu=0
refuse "a fault of a GPU that is not there" 2 'GPU 7' "$f" run "$trace" --platform generic --policy maxfreq --fault lost:gpu=7,from_s=1
refuse "a lost GPU" 3 'GPU 0 fell off the bus' "$f" run "$trace" --platform generic --policy maxfreq --fault lost:gpu=0,from_s=0
refuse "a mix of nothing" 2 'no.csv: cannot open' "$f" synth --mix "$dir/no.csv" -o "$dir/m.csv"

# ---- requests that arrive ----
requests=(traces/samples/inference.csv --platform a100)
succeed "requests" '^latency +0\.[0-9]+ s mean, .* longest' "$f" run "${requests[@]}" --policy assure \
  --arrivals poisson:rate=20,count=50 --served "$dir/requests.csv" --iterations "$dir/iterations.csv"
check "a row for each request" test "$(wc -l <"$dir/requests.csv")" = 51
check "requests in order, none done before it came" awk -F, 'NR > 1 && ($2 < last || $3 < $2 || $4 < $3 || $5 != $4 - $2) { exit 1 }
  NR > 1 { last = $2 } END { exit NR != 51 }' "$dir/requests.csv"
check "a row for each iteration" test "$(wc -l <"$dir/iterations.csv")" = 1201
succeed "an overload is said" 'note: overloaded' "$f" run "${requests[@]}" --policy nvboost --arrivals poisson:rate=60,count=50
printf '# foldline-arrivals 1\nt_ns\n0\n1000\n2000000000\n' >"$dir/list.csv"
succeed "arrivals from a list" '^requests +3, ' "$f" run "${requests[@]}" --policy nvboost --arrivals "$dir/list.csv"
printf '# foldline-arrivals 1\nt_ns\n0\n1000\n999\n' >"$dir/back.csv"
refuse "arrivals that go back" 2 'back.csv:5:1: .*expected ascending' "$f" run "${requests[@]}" --policy nvboost --arrivals "$dir/back.csv"
refuse "arrivals without a rate" 2 'no rate' "$f" run "${requests[@]}" --policy nvboost --arrivals poisson:count=5
refuse "a misspelt rate" 2 "did you mean 'rate'" "$f" run "${requests[@]}" --policy nvboost --arrivals poisson:rat=5,count=5
printf '{"foldline_experiment": 1, "arrivals": {"rate": 5, "cuont": 3}}' >"$dir/wrong.json"
refuse "wrong key in arrivals" 2 "wrong.json:[0-9]+:[0-9]+: .*count" "$f" compare "$dir/wrong.json"
inference=(harness/experiments/inference.json --seeds 2)
for n in 1 4; do "$f" grid "${inference[@]}" --threads $n -o "$dir/q$n.csv" >/dev/null || bad "sweep of requests, $n threads"; done
check "requests, 1 and 4 threads: same bytes" cmp "$dir/q1.csv" "$dir/q4.csv"
for i in 1 2 3; do "$f" grid "${inference[@]}" --shard $i/3 -o "$dir/qs.csv" >/dev/null || bad "shard $i of requests"; done
"$f" grid --merge "$dir"/qs.csv.shard-*-of-3 -o "$dir/qs.csv" >/dev/null
check "requests, 3 shards: same bytes" cmp "$dir/q1.csv" "$dir/qs.csv"
check "each seed has a default of its own" test "$(grep -c ',baseline:default,' "$dir/q1.csv")" = 6
check "the same arrivals for every policy of a seed" awk -F, '$2 == "nvboost" { a[$1 $14] = $28 } $2 == "baseline:default" { b[$1 $14] = $28 }
  END { for (k in a) { n++; if (a[k] != b[k]) exit 1 } exit n != 6 }' "$dir/q1.csv"
succeed "a report has latencies" 'written' "$f" report "$dir/q1.csv" -o "$dir/q.html"
check "the report's columns" grep -q 'latency p99, ms' "$dir/q.html"
succeed "a gate on latencies" 'recorded|written|rows' "$f" regress harness/experiments/inference.json --bless -o "$dir/q.json" --fail-if 'latency_p99_s>+1%'
succeed "an oracle over requests" 'requests arrive by the clock: no bound' "$f" compare traces/samples/launches.csv --platform generic --arrivals poisson:rate=50,count=20
make barrier.csv "$head_,waits_for" '0,0,0,0,1000000,k,1,1,1,1,1,1,' '1,0,0,0,400000,k,1,1,1,1,1,1,' '1,0,0,1000000,1500000,k,1,1,1,1,1,1,0'
succeed "time lost at a barrier" '^barriers +GPU 0: 0 s GPU 1: 0.0006 s' "$f" run "$dir/barrier.csv" --platform generic --gpus 2 --policy nvboost --assume compute --no-cpu

# ---- samples, experiments, plots, plug-ins ----
{ # a board of round numbers: 150 to 300 W from 1005 to 1410 MHz
  echo workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
  echo a,,1005,,300,14.1,150,; echo a,,1110,,300,12.8,165,; echo a,,1200,,300,11.8,190,; echo a,,1305,,300,10.9,230,
  echo a,,1410,,300,10.1,290,
} >"$dir/a100.csv"
sed 's/"bound": 0.05,/"bound": 0.05, "seeds": 3, "objective": "edp",/' harness/experiments/first-light.json |
  sed "s#../../traces#$root/traces#" >"$dir/three.json"
succeed "an experiment's seeds and objective" '528.pot3d, mean over 3 seeds, .*objective edp' "$f" compare "$dir/three.json" --no-oracle
succeed "which the command line overrides, by what is standard too" '^528.pot3d, bound .*objective energy' \
  "$f" compare "$dir/three.json" --no-oracle --seeds 1 --objective energy
sed 's/"drawn": 4, "seeds": .1, 101./"drawn": 4, "seeds": []/' harness/experiments/mf-gpoeo-short.json >"$dir/none.json"
refuse "applications that are never drawn" 2 'none.json.*expected seeds' "$f" compare "$dir/none.json"
for e in harness/experiments/*.json; do # activity records cost time: what needs them is shown with and without that, or says why not
  ! grep -q '"\(mf-gpoeo\|ideal-static\)"' "$e" || check "$e: records both ways" grep -q '"records": "\(both\|free\)"' "$e"
done
refuse "records neither free nor at cost" 2 'expected one of cost, free, both' "$f" run "$trace" --platform generic --policy nvboost --records some
refuse "an experiment without its input" 2 'the experiment names no workload' "$f" compare harness/experiments/power-wall.json
for e in harness/experiments/*.json; do
  case $e in
  */energyucb.json) continue ;; # tests/energyucb.sh runs it
  */geepafs-v100.json | */geepafs-maxq.json | */mf-gpoeo-3080ti.json) continue ;; # tests/program/measured.sh
  */mf-gpoeo.json | */ladder.json | */energyucb-grid.json | */dynaco-states.json) [ -n "${FL_NIGHTLY:-}" ] || continue ;;& # 5 to 10 s each
  */power-wall.json) input=("$dir/a100.csv") ;;
  */mf-gpoeo-short.json) # 5 s in full
    input=()
    [ -n "${FL_NIGHTLY:-}" ] || input=(--policy mf-gpoeo --workload AI_FE --seconds 40 --no-oracle)
    ;;
  */serving.json | */pools.json) input=(--policy ecofreq --no-oracle) ;; # whole, they take minutes: every clock at every load
  */energyucb-grid.json) input=(--seeds 1) ;; # whole, these take minutes with sanitizers, and run each night
  */dynaco.json | */dynaco-bus.json) input=(--workload miniFE --seeds 1) ;;
  */mf-gpoeo*) input=(--workload AI_TS --seconds 60 --no-oracle) ;;
  *) input=() ;;
  esac
  succeed "$e" 'policy|published +ours' "$f" compare "$e" "${input[@]}" -o "$dir/e.csv"
  for kind in pareto regret; do check "plot $kind" "$f" plot $kind "$dir/e.csv" -o "$dir/$kind.svg"; done
done
"$f" run traces/samples/launches.csv --platform generic --policy nvboost --timeline "$dir/time.csv" --every-ms 0.5 >/dev/null
check "plot timeline" "$f" plot timeline "$dir/time.csv" -o "$dir/time.png"
for p in $("$f" list platforms | cut -d' ' -f1); do succeed "platforms $p" 'sources' "$f" list platforms "$p"; done
for p in $("$f" list policies | cut -d' ' -f1); do succeed "policies $p" '^source: ' "$f" list policies "$p"; done
cp policies/skeleton.c "$dir/mine.c"
check "a plug-in builds outside the tree" gcc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I"$root" "$dir/mine.c" -o "$dir/mine.so" -lm
result() { "$f" run "$trace" --platform generic --policy "$1" --json | grep -E '"(energy_j|makespan_s|switches|steps)"' | head -n 4; }
check "and decides as the built-in" test "$(result "$dir/mine.so")" = "$(result skeleton)"
refuse "a .so that is none" 2 'rubbish.so' "$f" run "$trace" --platform generic --policy "$dir/rubbish.so"
succeed "oracle" 'clairvoyant.*bound' "$f" compare "$trace" --platform generic --bound 0.05

# ---- interrupted ----
"$f" synth -o "$dir/big.csv" --kernels 60000 --streams 4 --mean-us 200 >/dev/null
for signal in TERM KILL; do
  "$f" compare "$dir/big.csv" --platform generic --policy assure --policy utilizscale --seeds 3000 -o "$dir/cut.csv" >/dev/null 2>&1 &
  victim=$!
  until [ "$(cut -d ' ' -f 14 /proc/$victim/stat 2>/dev/null || echo 20)" -ge 20 ]; do sleep 0.01; done # is at work
  kill -$signal $victim 2>/dev/null
  wait $victim 2>/dev/null
  check "SIG$signal ends it in its middle" test $? -gt 128
  check "SIG$signal leaves no half file" test ! -e "$dir/cut.csv"
done
("$f" list policies assure | head -n 1) >"$dir/out" 2>&1
check "a closed pipe is no crash" grep -q assure "$dir/out"

finish
