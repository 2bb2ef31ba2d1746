#!/usr/bin/env bash
# Executed plans of clocks as the Perseus artifact releases them, made up here: imported, fitted, and files that are wrong.
. "$(dirname "$0")/shell.sh"
export COLUMNS=300

# Two stages, three microbatches; three iterations, the first of which is slow and has one forward too many.
python3 - "$dir" <<'END_PY'
import json, sys
folder = sys.argv[1]
lists = {0: "load F send_act load F send_act_recv_grad B load F send_act_recv_grad B recv_grad B reduce_tied reduce_data step".split(),
         1: "recv_act load F B send_grad_recv_act load F B send_grad_recv_act load F B send_grad reduce_tied reduce_data step".split()}
for plan, clocks in ((2, {"F": 1200, "B": 1050}), (4, {"F": 1410, "B": 1410})):
    sched, prof = [], []
    for rank, names in lists.items():
        mhz, last = [], clocks["F"]
        for name in names:
            last = clocks.get(name, last)
            mhz.append(last)
        sched.append({"rank": rank, "power_states": mhz})
        stub = 0.00001
        prof.append({"rank": rank, "iter_time": [9, 0.5 + plan / 100, 0.52 + plan / 100], "iter_energy": [999, 100 + rank, 102 + rank],
                     "time_breakdown": {"forward": [[1] * 4, [0.04, 0.05, 0.06], [0.04, 0.05, 0.06]], "backward": [[1] * 3, [0.1] * 3, [0.1] * 3],
                                        "load": [[0.008] * 3] * 3 if rank == 0 else [[stub, 0.007] * 3] * 3}})
    json.dump(sched, open(f"{folder}/{plan}.sched.json", "w"))
    json.dump(prof, open(f"{folder}/{plan}.prof.json", "w"))
END_PY
pairs=("$dir/4.prof.json" "$dir"/2.*.json "$dir/4.sched.json")
succeed "pairs in any order" 'plans  *2 executed on 2 ranks: 1F1B, 2 stages, 3 microbatches' "$f" import "${pairs[@]}" -o "$dir/cell"
check "the clocks" cmp <(grep -v '^#' "$dir/cell.plans.csv") - <<'END_CSV'
plan,rank,instruction,first_microbatch,count,sm_mhz
2,0,forward,0,3,1200
2,0,backward,0,3,1050
2,1,forward,0,3,1200
2,1,backward,0,3,1050
4,0,forward,0,3,1410
4,0,backward,0,3,1410
4,1,forward,0,3,1410
4,1,backward,0,3,1410
END_CSV
check "times and energy, without the first iteration" grep -qx '2,1,0.53,0.01414214,102,1.414214,2,0.53,0.01414214,203,2.828427' "$dir/cell.measured.csv"
# 0.04, 0.05, 0.06, twice: mean 0.05, variance 4e-4 / 5. Rank 0 comes to F F B F B B: two of its forwards after a backward, two of its backwards after a forward.
check "instructions, and how many switched" grep -qx '2,0,forward,1200,3,2,0.05,0.008944272' "$dir/cell.instructions.csv"
check "each alternates on the last stage" grep -qx '2,1,backward,1050,3,3,0.1,0' "$dir/cell.instructions.csv"
check "loads at the clock before them, without what receives only look for" cmp <(grep load "$dir/cell.instructions.csv" | grep '^4') - <<'END_CSV'
4,0,load,1410,3,0,0.008,0
4,1,load,1410,3,0,0.007,0
END_CSV
succeed "they are fitted" 'learned from 2 plans' "$f" fit pipeline "$dir/cell" -o "$dir/fitted.csv"
succeed "as JSON, nothing written" '"microbatches":[[:space:]]*3' "$f" import "${pairs[@]}" --json

refuse "half a pair" 2 '2.prof.json: stands alone, expected 2.sched.json beside it' "$f" import "$dir/2.prof.json"
refuse "something else among them" 2 'four-stages.pipeline.csv: among executed plans, expected names such as 2.sched.json' "$f" import "${pairs[@]}" traces/samples/four-stages.pipeline.csv
refuse "one twice" 2 'plan 2 is there twice' "$f" import "${pairs[@]}" "$dir/2.prof.json"
mkdir "$dir/bad"
cp "$dir/2.prof.json" "$dir/bad"
bad_sched() { # NAME PATTERN SED
  sed "$3" "$dir/2.sched.json" >"$dir/bad/2.sched.json"
  refuse "$1" 2 "$2" "$f" import "$dir"/bad/*.json -o "$dir/bad/none"
}
bad_sched "a rank twice" '2.sched.json:1:[0-9]+: \[1\]: rank 0 again' 's/"rank": 1/"rank": 0/'
bad_sched "a clock that is none" '2.sched.json:1:[0-9]+: \[0\].power_states\[0\]: .*expected' 's/1200/"fast"/'
bad_sched "half a clock" 'power_states: a clock of 1050.5 MHz, expected whole ones' 's/1050/1050.5/'
bad_sched "another schedule" 'as no 1F1B schedule of 2 ranks and 3 microbatches' 's/1200, 1200/1200/'
cp "$dir/2.sched.json" "$dir/bad"
bad_prof() { # NAME PATTERN SED
  sed "$3" "$dir/2.prof.json" >"$dir/bad/2.prof.json"
  refuse "$1" 2 "$2" "$f" import "$dir"/bad/*.json -o "$dir/bad/none"
}
bad_prof "a time that is none" 'time_breakdown.forward\[1\]\[1\]: .*expected' 's/0.05/null/'
bad_prof "times of too few" '2 times of forward, expected 3' 's/0.04, 0.05, 0.06/0.05, 0.06/'
bad_prof "energy of too few" 'iter_energy: 2 iterations, expected 3' 's/999, //'
bad_prof "cut off" 'ends too early' 's/.$//'
printf '[]' >"$dir/bad/2.prof.json"
refuse "nobody" 2 '2.prof.json:1:1: 0 ranks, expected a list' "$f" import "$dir"/bad/*.json
check "nothing of what was refused" sh -c "! ls '$dir'/bad/none* 2>/dev/null"
finish
