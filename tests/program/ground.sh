#!/usr/bin/env bash
# Fair ground for policies: jitter and markers in the replay of a sweep, and rows that the user names.
. "$(dirname "$0")/shell.sh"

cat >"$dir/s.csv" <<'END'
workload,sm_mhz,mem_mhz,time_s,power_w
a,600,1000,20,90
a,900,1000,14,130
a,1200,1000,11,180
a,1500,1000,10,250
b,600,1000,10,80
b,900,1000,9,100
b,1200,1000,8.6,130
b,1500,1000,8.5,170
END
compare() { "$f" compare "$dir/s.csv" --platform generic --no-oracle --policy slow=fixed:sm_mhz=900 --policy utilizscale "$@" >"$dir/out" 2>"$dir/err"; }
# field WORKLOAD POLICY SEED COLUMN of $dir/r.csv
field() {
  python3 - "$dir/r.csv" "$@" <<'END'
import csv, sys
path, workload, policy, seed, column = sys.argv[1:]
rows = list(csv.DictReader(l for l in open(path) if not l.startswith("#")))
print([r[column] for r in rows if r["workload"] == workload and r["policy"] == policy and r["seed"] == seed][0])
END
}

compare -o "$dir/plain.csv"
compare --jitter 0 -o "$dir/zero.csv"
check "no jitter is what it was" cmp -s <(grep -v '^#' "$dir/plain.csv") <(grep -v '^#' "$dir/zero.csv")
compare --jitter 5% --seeds 3 --threads 1 -o "$dir/r.csv"
compare --jitter 0.05 --seeds 3 --threads 2 -o "$dir/two.csv"
check "a share may be written in percent, and threads change nothing" cmp -s <(grep -v '^#' "$dir/r.csv") <(grep -v '^#' "$dir/two.csv")
for path in plain events; do
  compare --jitter 5% --seeds 3 --path $path -o "$dir/path.csv"
  check "by the $path path too" cmp -s <(grep -v '^#' "$dir/r.csv" | cut -d, -f1-8) <(grep -v '^#' "$dir/path.csv" | cut -d, -f1-8)
done

# The same seed is the same work at every clock: 14 s against 10 s, whatever was drawn. Other seeds are other work.
for seed in 1 2 3; do
  base=$(field a baseline:default $seed makespan_s) slow=$(field a slow $seed makespan_s)
  check "seed $seed is the same work at every clock" awk -v x="$slow" -v y="$base" 'BEGIN { exit !(x / y > 1.3985 && x / y < 1.4015) }'
done
check "another seed is other work" test "$(field a baseline:default 1 makespan_s)" != "$(field a baseline:default 2 makespan_s)"
check "workloads do not vary alike" test "$(field a baseline:default 1 makespan_s)" != "$(field b baseline:default 1 makespan_s)"
# 1,000 ops of cv 0.05: the sum has a cv of 0.16 %; five of these
check "the jitter has its mean" awk -v x="$(field a baseline:default 1 makespan_s)" 'BEGIN { exit !(x > 9.92 && x < 10.08 && x != 10) }'

run() { "$f" run "$dir/s.csv" --workload a --platform generic "$@"; }
succeed "markers each second" 'iterations  9 between markers' run --policy nvboost --iteration 1
succeed "jitter is told" 'jitter 5 %' run --policy nvboost --jitter 0.05
succeed "a row is called as asked for" '^tight ' "$f" compare "$dir/s.csv" --platform generic --no-oracle --policy tight=tightrope:bound=0.05
succeed "kernels of a stated length" 'kernels of 50 us' run --policy nvboost --op-us 50
check "are as many" eval "run --policy nvboost --op-us 50 | grep -q ' 200000 kernels'"
refuse "their length without a sweep" 2 'op-us has no effect without a sweep' "$f" run traces/samples/mix8.csv --platform generic --policy nvboost --op-us 5

# ---- what activity records cost ----
printf 'kernel,cpu_mhz,sm_mhz\nnone,1500,1500\n' >"$dir/none.csv"
takes() { run --policy "ideal-static:states=$dir/none.csv" --op-us 100 "$@" | sed -n 's/^makespan *\([0-9.]*\) s/\1/p'; }
check "a platform's records cost a time per kernel" test "$(takes)" = 10.08
check "or a share, where one is stated" test "$(takes --record-cost 2%)" = 10.2
check "or another time" test "$(takes --record-cost 2us)" = 10.2
check "or nothing" test "$(takes --records free --record-cost 2%)" = 10
refuse "a cost that is none" 2 "record cost '5000', expected a share" run --policy nvboost --record-cost 5000
refuse "a share of more than all" 2 "record cost '5000%'" run --policy nvboost --record-cost 5000%
refuse "jitter of more than all" 2 "jitter '1.5', expected how much" run --policy nvboost --jitter 1.5
refuse "negative jitter" 2 "jitter '-0.1'" run --policy nvboost --jitter=-0.1
refuse "no number" 2 "jitter 'nan'" run --policy nvboost --jitter nan
refuse "jitter of a trace" 2 'jitter has no effect without a sweep' "$f" run traces/samples/mix8.csv --platform generic --policy nvboost --jitter 5%
refuse "markers of a trace" 2 'iteration has no effect without a sweep' "$f" run traces/samples/mix8.csv --platform generic --policy nvboost --iteration 1
two() { "$f" compare "$dir/s.csv" --platform generic --policy x=nvboost --policy x=utilizscale; }
refuse "two rows of one name" 2 "two policies have the name 'x'" two
over() { "$f" compare "$dir/s.csv" --platform generic --policy nvboost=fixed:sm_mhz=900 --policy nvboost; }
refuse "a row called as another policy is" 2 "two policies have the name 'nvboost'" over
odd() { "$f" compare "$dir/s.csv" --platform generic --policy "$1"; }
refuse "a name that breaks a table" 2 'expected a name of letters' odd 'a,b=nvboost'
refuse "an empty name" 2 'expected a name of letters' odd '=nvboost'

# In an experiment, of its own or of a variant.
cat >"$dir/e.json" <<'END'
{"foldline_experiment": 1, "platform": "generic", "sweep": "s.csv", "oracles": false, "seeds": 2, "jitter": "5%",
 "policies": ["slow=fixed:sm_mhz=900"], "variants": {"rough": {"jitter": 0.2}}}
END
succeed "in an experiment" 'slow' "$f" compare "$dir/e.json"
sed 's/"policies": \[/&"slow=fixed:sm_mhz=1200", /' "$dir/e.json" >"$dir/twice.json"
refuse "two rows of one name there" 2 "twice.json: two policies have the name 'slow'" "$f" compare "$dir/twice.json"
cp traces/samples/mix8.csv traces/samples/mix8.kinds.csv "$dir"
sed 's/"sweep": "s.csv"/"traces": ["mix8.csv"]/; s/"jitter": "5%",//' "$dir/e.json" >"$dir/bad.json"
refuse "a variant's jitter of a trace" 2 'bad.json:2:.*jitter applies only to the workloads of a sweep' "$f" compare "$dir/bad.json"
sed 's/"5%"/"50"/' "$dir/e.json" >"$dir/bad.json"
refuse "a share that is none" 2 "bad.json:1:.*jitter '50'" "$f" compare "$dir/bad.json"
finish
