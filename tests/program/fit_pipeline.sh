#!/usr/bin/env bash
# Fitting a pipeline to executed clock plans, as a user does it: the sample, other plans than those learned, files that are wrong.
. "$(dirname "$0")/shell.sh"

base=traces/samples/perseus/A100-bert
succeed "half of the plans tell the others" 'learned from 8 plans, 7 left out' "$f" fit pipeline $base --learn half
succeed "and runs under power limits" 'power limits of 225 W and more, 8 runs' "$f" fit pipeline $base
succeed "as JSON" '"left_out":[[:space:]]*7' "$f" fit pipeline $base --learn half --json
error() { "$f" fit pipeline $base --learn half --json | python3 -c "import json, sys; print(json.load(sys.stdin)['$1']['mean_pct'] < $2)"; }
check "time within 0.3 %" test "$(error time 0.3)" = True
check "energy within 0.6 %" test "$(error energy 0.6)" = True

succeed "the fitted pipeline is written" 'learned from 15 plans' "$f" fit pipeline $base -o "$dir/bert.pipeline.csv"
check "it is 1F1B" grep -qx '# schedule: 1f1b' "$dir/bert.pipeline.csv"
succeed "and runs" '4 GPUs' "$f" run --pipeline "$dir/bert.pipeline.csv" --platform a100-pcie --policy fixed:sm_mhz=1170
"$f" fit pipeline $base -o "$dir/again.csv" >/dev/null
check "the same again" cmp -s "$dir/again.csv" "$dir/bert.pipeline.csv"

refuse "another way to learn" 2 "no --learn 'halves', expected one of all, half" "$f" fit pipeline $base --learn halves
refuse "no files" 2 'nowhere\.plans\.csv' "$f" fit pipeline nowhere
refuse "two of them" 2 'expected one BASE' "$f" fit pipeline $base $base
refuse "stages that do not fit" 2 '4 ranks, expected a multiple of 3 stages' "$f" fit pipeline $base --stages 3
cp traces/samples/perseus/*.csv "$dir"
sed -i 's/^4,1,forward/4,9,forward/' "$dir/A100-bert.instructions.csv"
refuse "a rank that there is not" 2 'A100-bert\.instructions\.csv:[0-9]+:3: rank is' "$f" fit pipeline "$dir/A100-bert"
finish
