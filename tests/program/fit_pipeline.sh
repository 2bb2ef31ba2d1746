#!/usr/bin/env bash
# Fitting a pipeline to executed clock plans, as a user does it: the sample, other plans than those learned, files that are wrong.
. "$(dirname "$0")/shell.sh"

base=traces/samples/perseus/A100-bert
succeed "half of the plans tell the others" 'learned from 8 plans, 7 left out' "$f" fit pipeline $base --learn half
succeed "and runs under power limits" 'power limits of 225 W and more, 8 runs' "$f" fit pipeline $base
check "which a rank meets as a plan of as many watts does" awk '/^limits/ { n++; bad = !($3 < 3 && $13 < 3) } END { exit bad || !n }' "$dir/out"
succeed "as JSON" '"left_out":[[:space:]]*7' "$f" fit pipeline $base --learn half --json
error() { "$f" fit pipeline $base --learn half --json | python3 -c "import json, sys; print(json.load(sys.stdin)['$1']['mean_pct'] < $2)"; }
check "time within 0.3 %" test "$(error time 0.3)" = True
check "energy within 0.6 %" test "$(error energy 0.6)" = True

succeed "the fitted pipeline is written" 'learned from 15 plans' "$f" fit pipeline $base -o "$dir/bert.pipeline.csv"
check "it is 1F1B" grep -qx '# schedule: 1f1b' "$dir/bert.pipeline.csv"
succeed "and runs" '4 GPUs' "$f" run "$dir/bert.pipeline.csv" --platform a100-pcie --policy fixed:sm_mhz=1170
"$f" fit pipeline $base -o "$dir/again.csv" >/dev/null
check "the same again" cmp -s "$dir/again.csv" "$dir/bert.pipeline.csv"

cp $base.*.csv "$dir"
for x in plans measured instructions caps; do
  refuse "an output over BASE.$x.csv" 2 "A100-bert\\.$x\\.csv: is an input" "$f" fit pipeline "$dir/A100-bert" -o "$dir/A100-bert.$x.csv"
  check "which stays" cmp $base.$x.csv "$dir/A100-bert.$x.csv"
done
refuse "another way to learn" 2 "no --learn 'halves', expected one of all, half" "$f" fit pipeline $base --learn halves
refuse "no files" 2 'nowhere\.plans\.csv' "$f" fit pipeline nowhere
refuse "two of them" 2 'expected one BASE' "$f" fit pipeline $base $base
refuse "stages that do not fit" 2 '4 ranks, expected a multiple of 3 stages' "$f" fit pipeline $base --stages 3
cp traces/samples/perseus/*.csv "$dir"
sed -i 's/^4,1,forward/4,9,forward/' "$dir/A100-bert.instructions.csv"
refuse "a rank that there is not" 2 'A100-bert\.instructions\.csv:[0-9]+:3: rank is' "$f" fit pipeline "$dir/A100-bert"

# One plan, and none.
for x in plans measured instructions; do grep -E '^(#|plan|4,)' $base.$x.csv >"$dir/one.$x.csv"; head -1 <(grep '^plan' $base.$x.csv) >"$dir/none.$x.csv"; done
succeed "one plan alone" 'learned from 1 plan, 0 left out' "$f" fit pipeline "$dir/one"
refuse "no plan to learn from" 2 'learn slow leaves no plan to learn from, expected more plans than 1' "$f" fit pipeline "$dir/one" --learn slow
refuse "no plan at all" 2 'none\.plans\.csv: no plans' "$f" fit pipeline "$dir/none"

# A list that is not 1F1B: each stage computes without a transfer. What is written names it, wherever it is written.
cp "$dir"/one.plans.csv "$dir/list.plans.csv" && cp "$dir"/one.measured.csv "$dir/list.measured.csv" && cp "$dir"/one.instructions.csv "$dir/list.instructions.csv"
{
  echo stage,index,instruction,microbatch,microbatch2
  for stage in 0 1 2 3; do for m in {0..31}; do echo "$stage,$((2 * m)),forward,$m,-1"; echo "$stage,$((2 * m + 1)),backward,$m,-1"; done; done
} >"$dir/list.order.csv"
mkdir "$dir/else"
for out in list.pipeline.csv else/list.pipeline.csv; do
  succeed "a list, written to $out" 'learned from 1 plan' "$f" fit pipeline "$dir/list" -o "$dir/$out"
  succeed "it finds its list" '4 GPUs' "$f" run "$dir/$out" --platform a100-pcie --policy nvboost
done
check "beside its list it names it alone" grep -qx '# order: list.order.csv' "$dir/list.pipeline.csv"

# Sixteen ranks in four stages, whose energies say more of waiting than there is: powers stay above zero.
python3 - "$dir/wide" <<'END'
import sys
base, ranks, stages, micro = sys.argv[1], 16, 4, 8
plans, measured, parts = (open("%s.%s.csv" % (base, x), "w") for x in ("plans", "measured", "instructions"))
plans.write("plan,rank,instruction,first_microbatch,count,sm_mhz\n")
measured.write("plan,rank,iter_time_s,iter_energy_j,plan_time_s,plan_energy_j\n")
parts.write("plan,rank,kind,sm_mhz,count,time_mean_s,time_sd_s\n")
for p in range(6):
    mhz = 1000 + 80 * p
    t = (micro + stages - 1) * 0.15 * 1410 / mhz + 0.1
    for r in range(ranks):
        for kind, one in (("forward", 0.05), ("backward", 0.1)):
            plans.write("%d,%d,%s,0,%d,%d\n" % (p, r, kind, micro, mhz))
            parts.write("%d,%d,%s,%d,%d,%g,0.0001\n" % (p, r, kind, mhz, micro, one * 1410 / mhz))
        busy = micro * 0.15 * 1410 / mhz
        e = busy * 250 * (mhz / 1410) ** 1.5 + (t - busy) * 80
        measured.write("%d,%d,%g,%g,%g,%g\n" % (p, r, t, e, t, e * ranks))
END
for learn in all half three first slow; do
  succeed "two by two replicas of four stages, learned from $learn" ' W at 1050 MHz' "$f" fit pipeline "$dir/wide" --stages 4 --tensor-parallel 2 --learn $learn -o "$dir/wide.pipeline.csv"
  check "no number is missing" sh -c "! grep -Eq 'nan|inf|,-' '$dir/wide.pipeline.csv'"
done
check "its groups are named" grep -qx '# tensor_parallel: 2' "$dir/wide.pipeline.csv"
succeed "it runs on 16 GPUs" '16 GPUs' "$f" run "$dir/wide.pipeline.csv" --platform a100-pcie --policy nvboost --repeat 1

# ---- a load that only one plan has recorded ----
for x in $base.*.csv; do cp "$x" "$dir/rare.${x#"$base".}"; done
awk -F, 'NR == 1 || !($3 == "load" && $2 == 0 && $1 != 0)' $base.instructions.csv >"$dir/rare.instructions.csv"
succeed "half of the plans may have none" 'the mean of 8 fits to halves' "$f" fit pipeline "$dir/rare" -o "$dir/rare.pipeline.csv"
refuse "means of fits that are written nowhere" 2 '--twins has no effect without -o' "$f" fit pipeline $base --twins 4
check "the step has its length" grep -Eq '^\*,step,,0\.0[0-9]+,$' "$dir/rare.pipeline.csv"
succeed "plans can be made for it" '4 ranks, 256 forwards' "$f" plan "$dir/rare.pipeline.csv" --platform a100-pcie --frontier -o "$dir/rare.plan.csv"
finish
