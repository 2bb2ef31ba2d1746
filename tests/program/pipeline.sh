#!/usr/bin/env bash
# Pipelines of training as a user runs them: one rank a GPU, what waiting costs, and files that are wrong.
. "$(dirname "$0")/shell.sh"

sample=traces/samples/four-stages.pipeline.csv
succeed "a pipeline of four stages" '4 GPUs' "$f" run "$sample" --platform a100-pcie --policy nvboost
succeed "its ranks wait for each other" 'GPU 3: .* waiting for another' "$f" run "$sample" --platform a100-pcie --policy fixed:sm_mhz=1200
succeed "policies side by side" 'baseline:static' "$f" compare "$sample" --platform a100-pcie --policy fixed:sm_mhz=1200 --policy utilizscale \
  --bound 0.05

# A plan of one clock is a static lock: so many iterations take so many times as long, at the same power.
seconds() { "$f" run "$sample" --platform a100-pcie --policy nvboost --json "$@" 2>/dev/null | sed -n 's/^.*"makespan_s":[[:space:]]*\([0-9.e+-]*\).*$/\1/p' | head -1; }
one=$(seconds) ten=$(seconds --repeat 10)
if awk -v a="$one" -v b="$ten" 'BEGIN { exit !(a > 0 && (b / a - 10) ^ 2 < 1e-12) }'; then ok "ten iterations"; else bad "ten iterations" "$one and $ten"; fi

for threads in 1 2; do
  "$f" compare "$sample" --platform a100-pcie --policy utilizscale --policy fixed:sm_mhz=1200 --threads $threads -o "$dir/t$threads.csv" >/dev/null
done
if cmp -s "$dir/t1.csv" "$dir/t2.csv"; then ok "the same on two threads"; else bad "the same on two threads" differ; fi

# refused NAME SED MESSAGE: the sample changed so
refused() {
  sed "$2" "$sample" >"$dir/bad.csv"
  refuse "$1" 2 "$3" "$f" run "$dir/bad.csv" --platform a100-pcie --policy nvboost
}
refused "a schedule nobody knows" 's/1f1b/1f2b/' "bad.csv:2: schedule is '1f2b', expected 1f1b, gpipe, interleaved or list"
refused "a part nobody knows" 's/^\*,load/*,laod/' "bad.csv:19:3: no what 'laod', did you mean 'load'"
refused "a rank too many" 's/^0,forward,1050/4,forward,1050/' "bad.csv:13:1: rank is '4', expected 0 to 3"
refused "no power while blocked" '/blocked/d' "rank 0 has no 'blocked'"
refused "clocks that the platform lacks" 's/,1050,/,2000,/;s/,1200,/,2100,/;s/,1410,/,2200,/' 'has no clock in that range'
refuse "more ranks than GPUs can be" 2 'ranks' "$f" run <(sed 's/stages: 4/stages: 1024/;5i # data_parallel: 2' "$sample") --platform a100-pcie --policy nvboost
refuse "GPUs beside a pipeline" 2 'has one GPU per rank' "$f" run "$sample" --platform a100-pcie --policy nvboost --gpus 2
refuse "requests beside a pipeline" 2 'arrivals has no effect' "$f" run "$sample" --platform a100-pcie --policy nvboost --arrivals poisson:rate=1,count=2
# A few lines may state more than any memory holds.
printf '%s\n' stage,index,instruction,microbatch,microbatch2 {0..1023},0,forward,0,-1 >"$dir/wide.csv"
sed 's/1f1b/list/;5i # order: wide.csv' "$sample" | sed 's/stages: 4/stages: 1024/;s/microbatches: 32/microbatches: 1000000/' >"$dir/wide.pipeline.csv"
refuse "more work than memory holds" 2 '1024000000 forwards in one iteration' "$f" run "$dir/wide.pipeline.csv" --platform a100-pcie --policy nvboost
refuse "no such file" 2 'nowhere.csv' "$f" run nowhere.csv --platform a100-pcie --policy nvboost

# A list of instructions: who waits for whom for ever.
sed 's/1f1b/list/;5i # order: list.csv' "$sample" | sed 's/stages: 4/stages: 2/;s/microbatches: 32/microbatches: 1/' >"$dir/list.pipeline.csv"
printf '%s\n' stage,index,instruction,microbatch,microbatch2 0,0,recv_grad,0,-1 0,1,forward,0,-1 0,2,send_act,0,-1 \
  1,0,recv_act,0,-1 1,1,forward,0,-1 1,2,send_grad,0,-1 >"$dir/list.csv"
refuse "a deadlock" 2 'stage 0, instruction 0 \(recv_grad\): rank 0 waits here for ever for rank 1' \
  "$f" run "$dir/list.pipeline.csv" --platform a100-pcie --policy nvboost

# A list is an input like any other: who changes it has another experiment, even where as much is done in another order.
lists() { printf '%s\n' stage,index,instruction,microbatch,microbatch2 "$@" >"$dir/two.csv"; }
sed 's/1f1b/list/;5i # order: two.csv' "$sample" | sed 's/stages: 4/stages: 1/;s/microbatches: 32/microbatches: 2/' >"$dir/two.pipeline.csv"
shard() { "$f" grid "$dir/two.pipeline.csv" --platform a100-pcie --policy nvboost --shard "$1" -o "$dir/two" >/dev/null; }
lists 0,0,forward,0,-1 0,1,backward,0,-1 0,2,forward,1,-1 0,3,backward,1,-1
shard 1/2
"$f" compare "$dir/two.pipeline.csv" --platform a100-pcie --policy nvboost -o "$dir/rows.csv" >/dev/null
check "the list is among the inputs" grep -q 'two\.csv' "$dir/rows.provenance.json"
lists 0,0,forward,0,-1 0,1,forward,1,-1 0,2,backward,0,-1 0,3,backward,1,-1
shard 2/2
refuse "shards of two lists" 2 'begun with other inputs' "$f" grid --merge "$dir/two.shard-1-of-2" "$dir/two.shard-2-of-2" -o "$dir/all.csv"
finish
