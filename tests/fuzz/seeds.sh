#!/usr/bin/env bash
# Seeds for the fuzzers of tests/fuzz/fuzzers.txt, made by the program itself: what it writes is what it reads again.
#   tests/fuzz/seeds.sh PROGRAM FOLDER    FOLDER/seeds/NAME/ for each fuzzer, FOLDER/inputs/ for what commands need besides
# Small ones kept in tests/fuzz/seeds/ (files of other tools) are copied to those that read them.
set -euo pipefail
program=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/../.."
root=$PWD kept=$PWD/tests/fuzz/seeds samples=$PWD/traces/samples
rm -rf "${out:?}/seeds" "${out:?}/inputs" "${out:?}/made"
mkdir -p "$out/seeds" "$out/inputs" "$out/made"
cut -d' ' -f1 tests/fuzz/fuzzers.txt | grep '^[a-z]' | while read -r name; do mkdir "$out/seeds/$name"; done

foldline() { "$program" "$@" >"$out/made/said" 2>&1 || { echo "foldline $*: $(cat "$out/made/said")" >&2; exit 1; }; }
# seed NAME FILE...: an input of so many files, each but the last ended by the byte 0x1c.
seed() {
  local name=$1 first=1 at
  at=$out/seeds/$name/$(ls "$out/seeds/$name" | wc -l)
  shift
  for f in "$@"; do
    [ $first = 1 ] || printf '\034'
    first=0
    cat "$f"
  done >"$at"
}

for d in "$kept"/*/; do
  name=$(basename "$d")
  for f in "$d"*; do
    seed "$name" "$f"
    case $name in
    cache | geepafs) ;;
    *) seed import "$f" ;;
    esac
    case $name in
    foldline-kernels | foldline-telemetry | nsys-csv | nvidia-smi) seed stats "$f" ;;
    esac
  done
done
seed join "$kept/foldline-kernels/k.csv" "$kept/foldline-telemetry/t.csv"
seed join "$kept/nsys-csv/ns.csv" "$kept/nvidia-smi/units.csv"

cd "$out/inputs"
cat >sweep.csv <<'END'
workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
a,,600,,,20,90,
a,,900,,,14,130,
a,,1200,,,11,180,
a,,1500,,,10,250,2500
END
cat >chip.csv <<'END'
workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j
a,,600,,,20,90,
a,,900,,,14,130,
a,,1200,,,11,180,
a,,1500,,,10,250,2500
b,,600,,,10,80,
b,,900,,,9,100,
b,,1200,,,8.6,130,
b,,1500,,,8.5,170,
c,,600,,,15,85,
c,,900,,,11.5,115,
c,,1200,,,10,155,
c,,1500,,,9.4,215,
END
echo '{"sm_mhz": {"from": 210, "to": 1410, "steps": [15]}, "mem_mhz": [1593], "tdp_w": 400}' >facts.json
foldline synth -o t.csv --kernels 40 --mean-us 3000 --streams 2 --seed 3
foldline synth -o long.csv --kernels 30 --mean-us 300000 --seed 4
foldline run long.csv --platform generic --policy maxfreq --telemetry sensor.csv --timeline meter.csv --every-ms 20
cat >e.json <<'END'
{"foldline_experiment": 1, "platform": "generic", "traces": ["t.csv"], "bound": 0.1, "bounds": ["mean_power_w<250"],
 "seeds": 2, "policies": ["nvboost", {"policy": "assure", "set": {"theta": {"each": [0.8, 0.9]}}}],
 "variants": {"ideal wall": {"wall": "ideal"}}}
END
foldline compare e.json -o rows.csv
foldline fit device chip.csv -o device.json

cd "$out/made"
cp "$out"/inputs/* .
foldline compare e.json -o rows.csv
seed results rows.csv rows.provenance.json
seed report rows.csv rows.provenance.json
for f in rows.provenance.json e.json device.json; do seed results-json "$f"; done
for i in 1 2; do foldline grid e.json --shard $i/2 -o s.csv; done
seed shards s.csv.shard-1-of-2 s.csv.shard-2-of-2 s.csv.provenance.json
seed journal s.csv.shard-1-of-2
foldline grid e.json -o whole.csv
seed results whole.csv whole.provenance.json
foldline regress e.json --bless -o base.json --fail-if "energy_j>1%"
seed baseline base.json
seed regress base.json
seed results-json base.json
seed experiment e.json
for f in first-light inference power-capping energyucb; do
  seed experiment "$root/harness/experiments/$f.json"
done
for f in "$root"/models/platforms/{generic,a100,apu-a10-5800k,v100-sxm2-16gb}.json; do
  [ ! -f "$f" ] || for t in platform base calibration; do seed $t "$f"; done
done
for t in platform base calibration device; do seed $t device.json; done
for f in "$root"/models/boards/{h200-sxm,t4,mi250x}*.json; do [ ! -f "$f" ] || seed board "$f"; done
seed board-xml "$root/tests/support/smi.xml"
seed facts facts.json
echo '{"name": "x", "sm_mhz": [600, 900], "mem_mhz": [810, 1593], "default_mem_mhz": 810, "tdp_w": 400, "peak_gb_s": 900}' >facts.json
seed facts facts.json
for t in advise capping sweetspot; do for f in chip.csv sweep.csv; do seed $t $f; done; done
seed capping "$samples/powercap.sweep.csv"
seed serving "$samples/serving/rtx4090-llama3.1-8b.serving.csv"
printf 'phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w\n%s\n' 'prefill,1000,1,100,0,0.1,100
prefill,2000,1,100,0,0.06,200
decode,1000,2,2,300,0.03,110
decode,2000,2,2,300,0.02,150
decode,2000,50,50,300,0.04,' >steps.csv
seed fit-serving steps.csv
echo 'a,c,m,t,p
x,900,810,1000,90
x,1200,810,700,150' >table.csv
echo '{"workload": "a", "sm_mhz": "c", "mem_mhz": "m", "time_s": "t/1000", "power_w": "p"}' >map.json
seed sweep-map table.csv map.json
echo 'name,900,1200
x,90,150' >wide.csv
echo '{"workload": "name", "sm_mhz": "header", "power_w": "cells", "time_s": 1}' >map.json
seed sweep-map wide.csv map.json
printf 'ts;gpu;W\n2025-03-01T10:00:00,5Z;GPU 1;250,5\n1740823201;0;251 mW\n' >log.csv
echo '{"t": "ts", "gpu": "gpu", "power_w": "W", "sm_mhz": "1410"}' >map.json
seed telemetry-map log.csv map.json
printf '# ts W\n0 2025-03-01 10:00:00 250\n1 2025-03-01 10:00:01 251\n' >log.csv
echo '{"t": "ts", "power_w": "W/1000"}' >map.json
seed telemetry-map log.csv map.json
for mhz in 1500 1000; do
  foldline run long.csv --platform generic --policy fixed:sm_mhz=$mhz --telemetry "w@$mhz.log" --every-ms 500
done
foldline run t.csv --platform generic --policy maxfreq --telemetry t.telemetry.csv --every-ms 5
seed fit-trace t.csv t.csv
seed fit-trace "$kept/nsys-csv/ns.csv" "$kept/nsys-csv/us.csv"
echo '[{"rank":0,"power_states":[1200,1200,1050,1050,1050,1050]}]' >2.sched.json
echo '[{"rank":0,"iter_time":[1,1],"iter_energy":[9,9],"time_breakdown":{"forward":[[0.1],[0.1]],"backward":[[0.2],[0.2]],"load":[[0.01],[0.01]]}}]' >2.prof.json
seed executed 2.sched.json 2.prof.json
for f in t.csv "$kept"/{kineto/*.json,nsys-csv/*,rocprofv3/*}; do seed run "$f" && seed plot "$f"; done
for t in advise-logs fit-logs; do seed $t w@1500.log w@1000.log; done
seed advise-logs "$kept/nvidia-smi/units.csv" "$kept/nvidia-smi/units.csv"
echo '# foldline-telemetry 1
t_ns,device,power_w,sm_mhz,util_gpu_pct' >idle.csv
for i in $(seq 0 39); do echo "$((i * 500000000)),0,$((40 + i / 10 * 5)),$((600 + i / 10 * 300)),0"; done >>idle.csv
seed idle idle.csv
foldline run long.csv --platform generic --policy maxfreq --telemetry short.csv --timeline meter.csv --every-ms 100
seed sensor short.csv
seed meter meter.csv
foldline synth -o hot.csv --kernels 800 --kinds 1 --memory 0 --mean-us 10000 --platform v100-300w
printf 't_ns,watts\n0,220\n3000000000,150\n5000000000,220\n' >target.csv
foldline run hot.csv --platform v100-300w --policy gridpilot:kp=0,ki=0,kd=0 --target target.csv --timeline limits.csv --every-ms 20
seed power-limit limits.csv
seed plot-timeline meter.csv
pipeline=$samples/four-stages.pipeline.csv
foldline plan "$pipeline" --frontier --points 4 --rows frontier.csv
seed plot-frontier frontier.csv
foldline run "$pipeline" --platform a100-pcie --policy fixed:sm_mhz=1200 --instructions gantt.csv
{ head -n 40 gantt.csv; } >gantt-short.csv
seed plot-gantt gantt-short.csv
printf '%s\n' workload,policy,violated,ttft_p99_s,tbt_p99_s,energy_per_token_j a,baseline:default,0,1,0.1,0.5 a,eco,0,1.5,0.12,0.4 \
  'a [v],eco,1,30,n/a,0.3' mean,eco,1,15,0.15,0.35 >servers.csv
seed plot-serving servers.csv
printf '%s\n' request,ttft_ns,tpot_ns,tbt_max_ns,e2e_ns 0,100000000,20000000,90000000,900000000 1,300000000,,0,300000000 >requests-served.csv
seed plot-latencies requests-served.csv
printf 't_s,power_w\n0,50\n1,60.5\n2,55\n' >m.csv
seed meter m.csv
foldline fit policy sensitivity "$samples/dynaco.programs.csv" --platform apu-a10-5800k --seconds 0.2 -o states.csv
{ head -n 30 states.csv; } >states-short.csv
seed state-runs states-short.csv
seed draws "$samples/energyucb-published.json"
for f in odpp.weights dynaco.states; do head -n 60 "$root/harness/experiments/$f.csv" >short.csv && seed table short.csv; done
for p in assure energyucb mf-gpoeo; do
  foldline run t.csv --platform rtx3080ti --policy $p --log log.csv
  head -n 60 log.csv >log-short.csv
  seed replay log-short.csv
  seed traces log-short.csv
done
printf 't_ns,watts\n0,180\n60000000000,270.5\n' >target.csv && seed traces target.csv
printf 't_s,demand_w,power_w,set_w,sm_mhz\n0,180,75.51,,1530\n1.0113,180,,232,1410\n' >way.csv && seed traces way.csv
gzip -kn t.csv && seed gzip t.csv.gz
printf 'short' | gzip -n >short.gz && seed gzip short.gz
for t in 'assure:theta=0.9,period_s=1' 'fixed:sm_mhz=900' 'poisson:rate=20,count=500,seed=1' \
  'drop:gpu=0,signal=power_w,from_s=1,for_s=2' 'energy_j>1%' 'latency_p99_s<0.17' '5%' \
  'sm_mhz=coreF,time_s=time/1000,workload=app+input'; do
  printf '%s' "$t" >text && seed texts text
done
printf 'foldline-record 1\nboot x\nunit gpu-0000\nprior -1 sm_lock\nprior 250000 limit_mw\nend\n' >r && seed record r
printf 'foldline-record 1\nboot x\nunit cpu\nprior 1 /sys/devices/system/cpu/cpufreq/boost\nend\n' >r && seed record r
printf 'foldline-record 1\nboot x\nunit rsmi-0\nprior 3 perf_level\nprior 500 sm_min_mhz\nend\n' >r && seed record r
printf 'HTTP/1.0 200 OK\r\n\r\nvllm:num_requests_waiting{engine="0"} 1\nvllm:kv_cache_usage_perc 0.5\nvllm:time_to_first_token_seconds_bucket{le="0.1"} 2\nvllm:time_to_first_token_seconds_bucket{le="+Inf"} 3\nvllm:time_to_first_token_seconds_sum 1\nvllm:time_to_first_token_seconds_count 3\nvllm:cache_config_info{block_size="16",num_gpu_blocks="9"} 1\n' >r && seed metrics r r
printf '%-63s\n%-63s\n/var/lib/foldline' '4711 123456' '4712 123457' >l && seed lock l
head -c 4300 /dev/zero >ring && seed ring ring
printf '800000 1200000 2400000\n\0341200000\n\0342400000\n\0342400000\n\034800000\n\0340 1\n\0341\n\034package-0\n\034123456789\n\034262143328850\n\03495000000\n\034cpu  1 2 3 4 5 6 7 8\n\034processor\t: 0\nmodel name\t: x\n' >cpu
seed cpu cpu
head -c 4096 "$program" >elf && seed elf elf
head -c 4096 /bin/ls >elf && seed elf elf
rm -rf "$out/made"
for d in "$out"/seeds/*/; do
  [ -n "$(ls "$d")" ] || { echo "no seed for fuzz-$(basename "$d")" >&2; exit 1; }
done
