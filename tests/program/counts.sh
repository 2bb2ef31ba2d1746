#!/usr/bin/env bash
# Counts that a file states: each of them, at numbers that no file can hold, is refused with the file's name and line before
# anything is made of it. A count that is believed shows as a crash, as memory beyond the limit, or as a run without end.
. "$(dirname "$0")/shell.sh"

numbers="18446744073709551615 1000000000000000000 -1"
[ -z "${FL_NIGHTLY:-}" ] || numbers="$numbers 9223372036854775808 4294967296"
export ASAN_OPTIONS=max_allocation_size_mb=1024:hard_rss_limit_mb=2048 # of a build with sanitizers
memory=2097152 # KiB of a build without
grep -q __asan_init "$f" && memory=unlimited
work=$dir/work
mkdir "$work"
trap 'rm -rf "$dir"' EXIT

# stated NAME FILE LINE COMMAND...: the text on standard input is FILE, in which @ is the count
stated() {
  local name=$1 file=$2 line=$3 text n status wrong=
  shift 3
  text=$(cat)
  for n in $numbers; do
    printf '%s\n' "${text//@/$n}" >"$work/$file"
    (cd "$work" && ulimit -t 20 && ulimit -v $memory && exec "$f" "$@") >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    if [ $status != 2 ] || ! grep -qE "(^|[ :])(\./)?$file:$line:" "$dir/err" || [ "$(wc -l <"$dir/err")" != 1 ]; then
      wrong="$wrong$n: exit $status: $(head -c 300 "$dir/err"); "
    fi
  done
  if [ -z "$wrong" ]; then ok "$name"; else bad "$name" "$wrong"; fi
}

cp traces/samples/mix8.csv traces/samples/launches.csv "$work"
key=00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee
echo '{}' >"$work/s.provenance.json"

# A pipeline states five, each a key of its head: all but the one in question are small.
for count in stages microbatches chunks data_parallel tensor_parallel; do
  {
    printf '%s\n' '# foldline-pipeline 1' '# schedule: interleaved' '# stages: 2' '# microbatches: 2' | grep -v "^# $count:"
    printf '# %s: @\n%s\n' "$count" rank,what,sm_mhz,time_s,power_w '*,forward,1000,0.01,150' '*,backward,1000,0.02,150' '*,blocked,,,70'
  } >"$dir/text"
  stated "a pipeline's $count" p.csv "$(grep -n @ "$dir/text" | cut -d: -f1)" run p.csv --platform generic --policy nvboost <"$dir/text"
done

# ---- what the program writes itself ----
stated "a shard's jobs" s.csv 1 grid --merge s.csv -o m.csv <<END
# foldline-journal 1 $key @
0 1 1 3610a686 hello
END
stated "a job's number" s.csv 2 grid --merge s.csv -o m.csv <<END
# foldline-journal 1 $key 1
@ 1 1 3610a686 hello
END
stated "a row's number" s.csv 2 grid --merge s.csv -o m.csv <<END
# foldline-journal 1 $key 1
0 @ 1 3610a686 hello
END
stated "a job's rows" s.csv 2 grid --merge s.csv -o m.csv <<END
# foldline-journal 1 $key 1
0 1 @ 3610a686 hello
END
stated "GPUs of a log of decisions" log.csv 2 verify log.csv --policy maxfreq <<'END'
# foldline-decisions 1
# gpus: @
step,t_ns,device,power_w,fresh,set_sm_mhz,delay_ns
0,0,0,100,,,
END
stated "a device of such a log" log.csv 4 verify log.csv --policy maxfreq <<'END'
# foldline-decisions 1
# gpus: 1
step,t_ns,device,power_w,fresh,set_sm_mhz,delay_ns
0,0,@,100,,,
END
stated "version of a baseline" b.json 1 regress b.json <<'END'
{"foldline_baseline": @, "experiment": "e.json", "seed": 1, "fail_if": [], "metrics": ["energy_j"], "rows": []}
END

# ---- traces and tables ----
kernels='device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z,launch_ns,host_thread,waits_for,bytes,sm_mhz'
while IFS='|' read -r name row; do
  stated "kernels: $name" k.csv 3 run k.csv --platform generic --policy maxfreq <<END
# foldline-kernels 1
$kernels
$row
END
done <<'END'
a device|@,0,7,100,200,f,4,1,1,64,1,1,50,1,,,
a grid|0,0,7,100,200,f,@,1,1,64,1,1,50,1,,,
a block|0,0,7,100,200,f,4,1,1,@,1,1,50,1,,,
another process that it waits for|0,0,7,100,200,f,4,1,1,64,1,1,50,1,@,,
END
stated "programs: launches of a kernel" p.csv 3 run p.csv --platform generic --policy maxfreq --assume balanced <<'END'
# foldline-programs 1
program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv
a,1,1,f,@,25,0.2,55,0.2
END
stated "programs: rounds of the parts" p.csv 3 run p.csv --platform generic --policy maxfreq --assume balanced <<'END'
# foldline-programs 1
program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv,cycles
a,1,1,f,5,25,0.2,55,0.2,@
END
stated "telemetry: a device" t.csv 3 import t.csv -o o.csv <<'END'
# foldline-telemetry 1
t_ns,device,power_w
0,@,100
END

# ---- experiments ----
while IFS='|' read -r name entry; do
  stated "experiment: $name" e.json 1 compare e.json <<END
{"foldline_experiment": 1, "platform": "generic", "traces": ["mix8.csv"], "policies": ["nvboost"], $entry}
END
done <<'END'
seeds|"seeds": @
GPUs|"gpus": @
positions|"positions": @
repetitions|"repeat": @
values of a parameter|"policies": [{"policy": "assure", "set": {"theta": {"from": 0.8, "to": 0.9, "count": @}}}]
drawn applications|"applications": {"drawn": @, "seeds": [1]}
requests|"arrivals": {"rate": 10, "count": @}
requests as a text|"arrivals": "poisson:rate=10,count=@"
steps of a replay|"draws": {"steps_max": @}
version|"foldline_experiment": @
END

# ---- platforms, boards, devices ----
"$f" list platforms generic --json >"$work/generic.json" || exit 1
python3 - "$work" <<'END'
import json, sys
folder = sys.argv[1]
tree = json.load(open(folder + "/generic.json"))
def write(name, change):
    t = json.loads(json.dumps(tree))
    change(t)
    open(f"{folder}/{name}.form", "w").write(json.dumps(t).replace('"@"', "@"))
write("gpus", lambda t: t.update(count="@"))
write("sms", lambda t: t["gpu"].update(sms="@"))
write("steps", lambda t: t["gpu"].update(sm_mhz={"from": 1, "to": 1500, "steps": ["@"]}))
write("version", lambda t: t.update(foldline_platform="@"))
END
for name in gpus sms steps version; do
  [ -f "$work/$name.form" ] && stated "platform: $name" p.json 1 list platforms ./p.json <"$work/$name.form"
done
stated "facts: a ladder" facts.json 1 fit device --facts ./facts.json -o d.json <<'END'
{"sm_mhz": {"from": 1, "to": 1410, "steps": [@]}, "mem_mhz": [1593], "tdp_w": 400}
END
sed 's/"steps": [0-9]*/"steps": @/' traces/samples/energyucb-published.json >"$work/draws.form"
line=$(grep -n '"steps": @' "$work/draws.form" | cut -d: -f1)
stated "steps of a published regret" draws.json "${line:-none}" fit policy draws draws.json -o o.csv <"$work/draws.form"
check "nothing was made" test -z "$(ls "$work" | grep -vE '^(s|s.provenance|b|log|k|p|t|e|mix8|launches|generic|facts|draws)\.(csv|json)$|form$')"
finish
