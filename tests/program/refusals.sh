#!/usr/bin/env bash
# Inputs that are easily accepted in silence: the program refuses them, names them or leaves the value unknown.
. "$(dirname "$0")/shell.sh"

mix=traces/samples/mix8.csv

# A bound is a share: the page says where it ends, and what lies above is refused as on the command line.
succeed "the page says how far a bound goes" '^  bound +text or number from 0 to 1; default: none' "$f" help experiment
for key in '"bound": 5' '"bounds": [5]'; do
  printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["%s"],\n%s, "policies": ["nvboost"]}' "$root/$mix" "$key" >"$dir/e.json"
  refuse "$key is 5 % or 500 %" 2 'e\.json:2:[0-9]+: bounds?(\[0\])?: 5, expected a share: 0\.05 or 5%; 500 % are said as 500%' \
    "$f" compare "$dir/e.json"
done

# A limit that no board takes was set to the nearest in silence.
refuse "a power limit below the board's" 2 'policy fixed: power_limit_w is not a limit that every GPU.s board takes' \
  "$f" run $mix --platform v100-300w --policy fixed:power_limit_w=40
refuse "the range of the limit" 2 'in its range: 35 to 80 W' "$f" run $mix --platform rtx4070-laptop --policy fixed:power_limit_w=200
refuse "several values of a parameter" 2 "'0.8/0.9' is not a number; compare" "$f" run $mix --platform generic --policy assure:theta=0.8/0.9
refuse "--set, where parameters follow the policy" 2 'here parameters follow the policy' "$f" compare $mix --platform generic --policy assure --set theta=0.9
refuse "a platform as a board" 2 "there is a platform of that name: --platform v100-300w" "$f" advise traces/samples/energyucb-528.pot3d.csv --board v100-300w
sed 's/energyucb-528/nosuch/' harness/experiments/first-light.json >"$dir/no.json"
refuse "an experiment's file that is not there" 2 'no.json:[0-9]*:[0-9]*: .*there is no file .*nosuch.pot3d.csv, expected one beside the experiment' "$f" compare "$dir/no.json"
succeed "a policy's own bound" . "$f" compare traces/samples/energyucb-528.pot3d.csv --platform pvc-max1550x6 --policy tightrope --bound 10% --no-oracle
check "is told beside another one" grep -q 'note: tightrope aims at a loss of 5 %, its parameter bound; runs are judged by 10 % (--policy tightrope:bound=0.1 aims at that)' "$dir/out"
refuse "and above" 2 'policy fixed: power_limit_w is not a limit' "$f" run $mix --platform v100-300w --policy fixed:power_limit_w=900
succeed "one that it takes" 'under fixed:power_limit_w=200' "$f" run $mix --platform v100-300w --policy fixed:power_limit_w=200

# A recording of one vendor's board on a platform of another's.
succeed "advise names the other vendor" "v3.csv was recorded on another vendor's board \(AMD\) than .* of platform a100-pcie" \
  "$f" advise tests/fuzz/seeds/rocprofv3/v3.csv --platform a100-pcie
check "its commands are the recorded board's" grep -q 'rocm-smi --setperfdeterminism' "$dir/out"
succeed "and is silent on its own" 'nvidia-smi' "$f" advise tests/fuzz/seeds/nsys-csv/ns.csv --platform a100-pcie
check "as it should be" test "$(grep -c 'another vendor' "$dir/out")" = 0

# A recording replayed on another chip took half an hour for a minute, without a word.
for command in run "compare --no-oracle"; do
  # shellcheck disable=SC2086 # words
  succeed "$command says that a recording is of another chip" . "$f" $command $mix --platform generic --policy nvboost
  check "with both clocks and what to do" grep -qE 'mix8\.csv: recorded at 2475 MHz, but the clocks of .* are [0-9]+ to [0-9]+ MHz, .*platforms with the recorded clocks: rtx4070-laptop' "$dir/err"
done

# A distribution replay knows no memory clock: 0 MHz would hold any bound from above.
cat >"$dir/w.csv" <<'END'
workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
a,,600,,,20,90,
a,,900,,,14,130,
a,,1200,,,11,180,
a,,1500,,,10,250,
END
printf '{"foldline_experiment": 1, "platform": "generic", "sweep": "w.csv", "draws": {"step_ms": 10}, "policies": ["energyucb"],
"bounds": ["mem_mhz_mean<2000"]}' >"$dir/draws.json"
"$f" compare "$dir/draws.json" >"$dir/out" 2>"$dir/err"
check "a clock that is not known holds no bound" grep -q 'energyucb has no value for mem_mhz_mean<2000' "$dir/out"

# Rows at other memory clocks, and under lower power limits, vanished from a replay.
cat >"$dir/mem.csv" <<'END'
workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w
a,,600,1000,,20,90
a,,1500,1000,,10,250
a,,600,500,,22,60
a,,1500,500,,13,150
b,,600,1000,,20,90
b,,1500,1000,,10,250
b,,900,500,,22,60
c,,600,1000,300,20,90
c,,1500,1000,300,10,250
c,,600,1000,200,20,90
END
succeed "a replay at a measured memory clock" '^makespan +12\.99' "$f" run "$dir/mem.csv" --workload a --platform generic --policy fixed:mem_mhz=500 --log "$dir/mem.log.csv"
succeed "is verified at both" ' 0 differ' "$f" verify "$dir/mem.log.csv"
succeed "a replay of what is left" . "$f" compare "$dir/mem.csv" --platform generic --policy nvboost
check "the rows left out are counted" grep -q '1 of 3 rows of a workload are not replayed, because their memory clock' "$dir/err"
check "and those under a lower limit" grep -q '1 of 3 rows of a workload are not replayed, because their power limit' "$dir/err"

# An output was an input that another input names: the file was lost.
stages=traces/samples/four-stages.pipeline.csv
"$f" plan $stages --frontier -o "$dir/x.plan.csv" >/dev/null
sed 's/1f1b/list/;5i # order: list.csv' $stages | sed 's/stages: 4/stages: 1/;s/microbatches: 32/microbatches: 1/' >"$dir/list.pipeline.csv"
printf '%s\n' stage,index,instruction,microbatch,microbatch2 0,0,forward,0,-1 0,1,backward,0,-1 >"$dir/list.csv"
cp "$dir/x.plan.csv" "$dir/x.before" && cp "$dir/list.csv" "$dir/list.before"
for out in --log --telemetry --probes; do
  refuse "run $out over a plan" 2 'x\.plan\.csv: is an input' "$f" run $stages --platform a100-pcie --policy "plan:plan=$dir/x.plan.csv#1" $out "$dir/x.plan.csv"
  refuse "run $out over the instructions" 2 'list\.csv: is an input' "$f" run "$dir/list.pipeline.csv" --platform generic --policy nvboost $out "$dir/list.csv"
done
refuse "compare -o over a plan" 2 'x\.plan\.csv: is an input' "$f" compare $stages --platform a100-pcie --policy "plan:plan=$dir/x.plan.csv#1" -o "$dir/x.plan.csv"
refuse "grid -o over a plan" 2 'x\.plan\.csv: is an input' "$f" grid $stages --platform a100-pcie --policy "plan:plan=$dir/x.plan.csv#1" -o "$dir/x.plan.csv"
for out in -o --rows; do
  refuse "plan $out over the instructions" 2 'list\.csv: is an input' "$f" plan "$dir/list.pipeline.csv" --frontier $out "$dir/list.csv"
done
for c in "run $mix --platform generic --policy nvboost" "compare $mix --platform generic" "compare $mix --platform generic --policy nvboost" \
  "grid $mix --platform generic --policy nvboost"; do
  cp $mix "$dir/in.csv" && cp ${mix%.csv}.kinds.csv "$dir/mix8.kinds.csv"
  refuse "$c -o over its input" 2 'is the same file as' "$f" ${c/$mix/$dir/in.csv} -o "$dir/in.csv"
done
cp traces/samples/energyucb-528.pot3d.csv "$dir/in.csv"
refuse "advise -o over its input" 2 'is the same file as' "$f" advise "$dir/in.csv" -o "$dir/in.csv"

# A result was lost where its file could not be written.
seen() { unwritten "$1 -o into no folder" "$2" "$f" "${@:3}" -o "$dir/nowhere/x"; }
seen run '^makespan' run $mix --platform generic --policy nvboost
seen "compare without a policy" '^baseline:static' compare $mix --platform generic
seen compare '^nvboost' compare $mix --platform generic --policy nvboost --no-oracle
seen advise 'energy saved' advise traces/samples/energyucb-528.pot3d.csv
seen plan '^plan' plan $stages
cp tests/fuzz/seeds/nsys-csv/ns.csv "$dir/k1.csv"
seen "fit trace" '^mean error in time' fit trace "$dir/k1.csv" "$dir/k1.csv" --sm-mhz 1410 --sm-mhz 1200 --platform a100 --no-cache
seen "fit policy sensitivity" '^GPU frequency sensitivity' fit policy sensitivity traces/samples/dynaco.programs.csv --platform apu-a10-5800k --seconds 0.1
unwritten "run --instructions into no folder" '^makespan' "$f" run $stages --platform a100-pcie --policy nvboost --instructions "$dir/nowhere/x.csv"
seen "fit device" '^sharpness' fit device traces/samples/energyucb-528.pot3d.csv
check "the inputs are as they were" cmp "$dir/x.plan.csv" "$dir/x.before"
check "both" cmp "$dir/list.csv" "$dir/list.before"

mkdir "$dir/gate" && cp tests/gate/gate.* "$dir/gate"
for x in json kinds.csv; do
  refuse "regress --junit over gate.$x" 2 "gate\.$x: is an input" "$f" regress "$dir/gate/gate.baseline.json" --junit "$dir/gate/gate.$x"
  check "which stays" cmp "$dir/gate/gate.$x" tests/gate/gate.$x
done

# Policies are checked before any trace is read: here that would be the second error.
printf '%s\n' '# foldline-kernels 1' device,process,stream,start_ns,end_ns,name 0,1,7,x,2,a >"$dir/wrong.csv"
early() { # POLICY PATTERN: by run and compare, and from an experiment
  local policy=$1 name=${1%%:*}
  refuse "run: $policy" 2 "$2" "$f" run "$dir/wrong.csv" --platform generic --policy "$policy"
  refuse "compare: $policy" 2 "$2" "$f" compare "$dir/wrong.csv" --platform generic --policy nvboost --policy "$policy"
  printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["wrong.csv"], "policies": ["nvboost", {"policy": "%s", "set": {%s}}]}' \
    "$name" "$(sed -E 's/^[^:]*:?//; s/([a-z_]+)=([^,]*)/"\1": \2/g' <<<"$policy")" >"$dir/wrong.json"
  refuse "compare of an experiment: $policy" 2 "$2" "$f" compare "$dir/wrong.json"
  refuse "grid: $policy" 2 "$2" "$f" grid "$dir/wrong.json" -o "$dir/wrong.out.csv"
}
early assure:theta=7 "policy assure: parameter 'theta' .* 7 is out of range"
early assure:thta=0.9 "policy assure: parameter 'thta' .*unknown.*theta"
early fixed:sm_mhz=1234 'policy fixed: sm_mhz: 1234 MHz is not on the SM ladder'
early throttllem 'policy throttllem: it reads the signals of a server'
printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["two.csv"], "policies": [{"policy": "fixed", "set": {"power_limits_w": [150, 160]}}]}' >"$dir/two.json"
printf '%s\n' '# foldline-kernels 1' device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z \
  0,1,7,0,1000000,a,1,1,1,1,1,1 1,1,7,0,1000000,a,1,1,1,1,1,1 >"$dir/two.csv"
succeed "a policy for the GPUs of a recording, of which the platform has fewer" . "$f" compare "$dir/two.json" --assume compute --no-oracle

# nan is a text that is no number: never an empty value, and never a number.
while read -r arguments; do
  # shellcheck disable=SC2086 # words
  refuse "nan: $arguments" 2 "nan['<:, ].*(not a number|no number|expected)" "$f" $arguments
done <<END
run $mix --platform generic --policy fixed:sm_mhz=nan
run $mix --platform generic --policy assure --set theta=nan
compare $mix --platform generic --policy assure --bound nan
compare $mix --platform generic --policy assure --bound energy_j<nan
compare $mix --platform generic --policy energyucb:arms_mhz=nan/900
run $mix --platform generic --policy nvboost --deadline nan
run $mix --platform generic --policy nvboost --seed nan
advise $mix --bound nan
advise $mix --sm-mhz nan
import $mix --offset nan
plan $stages --slowdown nan
search $mix --seeds nan
show $mix --where start_ns<nan
END

# A parameter that only init refuses was found by the first run, or blamed on memory.
printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["%s"],
"policies": ["nvboost", {"policy": "fixed", "set": {"sm_mhz": 1234}}]}' "$root/$mix" >"$dir/init.json"
refuse "grid: a clock off the ladder" 2 'policy fixed: sm_mhz: 1234 MHz is not on the SM ladder' "$f" grid "$dir/init.json" -o "$dir/init.csv"
refuse "compare" 2 'policy fixed: sm_mhz: 1234 MHz is not on the SM ladder' "$f" compare "$dir/init.json"

# The record of a result cut a long list.
"$f" compare $mix --platform generic --no-oracle --gpus 40 --policy "fixed:power_limits_w=$(seq -s / -f %.4f 200.1234 239.1234)" -o "$dir/long.csv" >/dev/null
check "a list of 40 values is recorded to its end" grep -q '"power_limits_w":.*/239\.1234"' "$dir/long.provenance.json"

# A run that the engine would refuse after its last repetition.
refuse "more runs than the engine has time for" 2 '--repeat 1000000: so many runs of 10 s take longer than 26 days' "$f" run "$dir/mem.csv" --workload a --platform generic --policy nvboost --repeat 1000000
refuse "more iterations" 2 '--repeat 1000000: so many iterations' "$f" run $stages --platform a100-pcie --policy nvboost --repeat 1000000

# Inputs without an end: what is no shard is not read, and a pipe is kept up to a limit (3 s, 4 GiB).
refuse "merge of an endless file" 2 '/dev/zero:1:1: not a journal of this version' timeout 10 "$f" grid --merge /dev/zero -o "$dir/m.csv"
if [ -n "${FL_NIGHTLY-}" ]; then
  refuse "an endless pipe" 2 'more than 4 GiB came through the pipe, expected an end, or a file' "$f" import <(yes)
fi

# A disk that filled between a result and its record left the result alone. The record is the longer, as the result is packed.
filled() {
  "$f" compare $mix --platform generic --no-oracle --gpus 81 --policy "fixed:power_limits_w=$(seq -s / -f %.4f 200.1 280.1)" \
    -o "$dir/full.csv.gz" >/dev/null 2>"$dir/err"
}
filled
check "the record is the longer file" test "$(stat -c %s "$dir/full.csv.gz")" -lt 2048 -a "$(stat -c %s "$dir/full.provenance.json")" -gt 2048
rm "$dir"/full*
(trap '' XFSZ && ulimit -f 2 && filled)
check "a disk that fills" test $? = 3
check "leaves neither the result nor its record" test "$(find "$dir" -name 'full*' | wc -l)" = 0

# A row that counts twice, and values that no result has.
refuse "a trace given twice" 2 'mix8\.csv is given twice' "$f" compare $mix ./$mix --platform generic --policy nvboost
printf '{"foldline_experiment": 1, "platform": "generic", "traces": ["%s", "%s"], "policies": ["nvboost"]}' "$root/$mix" "$root/$mix" >"$dir/twice.json"
refuse "by an experiment" 2 'mix8\.csv is given twice' "$f" compare "$dir/twice.json"
result() { { head -n 1 "$dir/long.csv" && sed -n "$1" "$dir/long.csv" | awk -F, -v OFS=, -v e="${2-}" 'e { $3 = e } 1'; } >"$dir/result.csv"; }
result '2p;2p'
refuse "report: a doubled row" 2 'result\.csv:3:1: workload .* stand in line 2 too' "$f" report "$dir/result.csv" -o "$dir/r.html"
for e in -5 1e308; do
  result 2p $e
  refuse "report: an energy of $e" 2 "result\.csv:2:[0-9]+: energy_j is '?$e" "$f" report "$dir/result.csv" -o "$dir/r.html"
done
"$f" run $mix --platform a100-pcie --policy assure --log "$dir/assure.csv" >/dev/null
awk -F, -v OFS=, '!done && $3 == "0" && $5 + 0 > 0 { $5 = -$5; done = 1 } 1' "$dir/assure.csv" >"$dir/minus.csv"
refuse "verify: a negative power" 2 "minus\.csv:[0-9]+:[0-9]+: power_w is '-" "$f" verify "$dir/minus.csv"

# Files by what they hold, not by an option or a name.
pot=traces/samples/energyucb-528.pot3d.csv
cp $pot "$dir/trace.csv" && gzip -c $pot >"$dir/packed" && printf '1,2\n3,4\n' >"$dir/what.csv"
succeed "a sweep by its content" '^makespan' "$f" run "$dir/trace.csv" --platform pvc-max1550x6 --policy nvboost
succeed "packed" '^makespan' "$f" run "$dir/packed" --platform pvc-max1550x6 --policy nvboost
succeed "from the standard input" '^makespan' sh -c '"$1" run - --platform pvc-max1550x6 --policy nvboost <"$2"' - "$f" "$dir/packed"
succeed "a trace and a sweep" '^nvboost' "$f" compare $mix $pot --platform pvc-max1550x6 --policy nvboost --no-oracle
succeed "programs" '^baseline:static' "$f" compare traces/samples/dynaco.programs.csv --workload lulesh --seconds 1 --platform apu-a10-5800k --positions 10
refuse "two sweeps" 2 'trace.csv:1: is a sweep like .*pot3d.csv, expected one file of this type' "$f" compare $pot "$dir/trace.csv" --platform generic
refuse "kinds" 2 'mix8.kinds.csv:1: is kernel classes, expected a kernel trace, a sweep' "$f" compare ${mix%.csv}.kinds.csv --platform generic
refuse "a log" 2 'assure.csv:1: is a log of decisions, expected' "$f" run "$dir/assure.csv" --platform generic --policy nvboost
refuse "nothing known" 2 'what.csv:1:1: not recognised, expected one of' "$f" compare "$dir/what.csv" --platform generic
refuse "no such option" 2 "unknown option '--sweep'" "$f" compare --sweep $pot --platform generic
finish
