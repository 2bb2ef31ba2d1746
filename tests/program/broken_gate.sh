#!/usr/bin/env bash
# The job of someone who guards a policy in CI: a gate recorded, broken on purpose in three ways (the policy, its settings,
# a promise), and whole again. It goes by README.md and harness/manual alone.
#   tests/program/broken_gate.sh build/foldline
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1
build() { gcc -O2 -fPIC -shared -fvisibility=hidden -DPOLICY_PLUGIN -I"$root" "$1" -o mine.so -lm; }

cp "$root/policies/skeleton.c" mine.c
check "a policy" build mine.c
succeed "a trace" . "$f" synth -o demo.csv --kernels 20000 --mean-us 500 --seed 7
cat >gate.json <<'EOT'
{"foldline_experiment": 1, "platform": "generic", "traces": ["demo.csv"], "bound": "20%", "oracles": false,
 "policies": ["nvboost", "./mine.so", "./mine.so:high_pct=95"]}
EOT
succeed "recorded" 'recorded: base.json, 4 rows' "$f" regress gate.json --bless -o base.json --fail-if 'energy_j!1%' --fail-if 'violated>+0'
succeed "unchanged, it passes" '^8 of 8 gates hold: ' "$f" regress base.json

# fails NAME PATTERN COMMAND...: exits 1 and says on stdout what matches
fails() {
  local name=$1 pattern=$2 status
  shift 2
  "$@" >out 2>err </dev/null
  status=$?
  if [ $status = 1 ] && grep -qE -- "$pattern" out; then ok "$name"; else bad "$name" "exit $status: $(head -c 300 err)" "$(head -n 5 out)"; fi
}
# ---- the policy: it steps down where it has to step up ----
sed '/else if (util > p->high_pct)/{n;s/+=/-=/}' mine.c >broken.c
check "the fault is planted" sh -c '! cmp -s mine.c broken.c'
check "it builds" build broken.c
fails "a broken policy is stopped" '^FAIL  ./mine.so on demo.csv: energy_j' "$f" regress base.json --junit gate.xml
check "nobody else is blamed" [ "$(grep -c '^FAIL' out)" = "$(grep -c '^FAIL  ./mine.so' out)" ]
check "CI reads it" grep -q '<failure message="./mine.so on demo.csv: energy_j' gate.xml
check "mended" build mine.c
succeed "it passes again" '^8 of 8 gates hold' "$f" regress base.json

# ---- paths in an experiment are relative to it, wherever the gate runs ----
mkdir ci
mv gate.json base.json ci
sed -i 's,"demo.csv","../demo.csv",; s,"./mine.so:high_pct=95","B=mine.so:high_pct=95"\, {"policy": "mine.so"\, "set": {"high_pct": 90}}\, "ideal-static:states=s.csv",' ci/gate.json
printf 'kernel,cpu_mhz,sm_mhz\nnone,2000,1000\n' >ci/s.csv
mv mine.so ci
build broken.c # another mine.so where the program runs
succeed "the experiment's plug-in is recorded, by every form of its name" 'recorded: ci/base.json, 6 rows' \
  "$f" regress ci/gate.json --bless -o ci/base.json --fail-if 'energy_j!0%'
check "with the policy's own path" [ "$(grep -c '"file":.*"ci/mine.so"' ci/base.json)" = 1 ]
succeed "it passes from there" '^6 of 6 gates hold' sh -c 'cd ci && "$0" regress base.json' "$f"
succeed "and from here" '^6 of 6 gates hold' "$f" regress ci/base.json
check "the command line's paths are relative to the folder" [ "$("$f" run demo.csv --platform generic --policy mine.so --json)" != \
  "$("$f" run demo.csv --platform generic --policy ci/mine.so --json)" ]

# ---- a trace under the same name ----
cp demo.csv kept.csv
"$f" synth -o demo.csv --kernels 20000 --mean-us 500 --seed 8 >/dev/null
refuse "another trace is no regression" 2 'demo.csv: not the file that ci/base.json was recorded from' "$f" regress ci/base.json
cp kept.csv demo.csv

# ---- two results ----
cat >two.json <<'EOT'
{"foldline_experiment": 1, "platform": "generic", "traces": ["demo.csv"], "oracles": false, "seeds": 3, "policies": ["nvboost", "energyucb", "depo"]}
EOT
succeed "the older" written "$f" compare two.json -o old.csv
sed '/^demo.csv,energyucb,/s/^\([^,]*,[^,]*,\)/\11/' old.csv >new.csv # an energy with a digit more
succeed "a result against itself" '^12 of 12 gates hold' "$f" regress old.csv old.csv
check "has no changes" [ "$(wc -l <out)" = 1 ]
fails "a worse one is stopped, by pairs of seeds" '^FAIL  energyucb on demo.csv: energy_j .*interval' "$f" regress old.csv new.csv
check "nobody else is blamed" [ "$(grep -c '^FAIL' out)" = 1 ]
succeed "the better one passes, and is shown" '^ok    energyucb on demo.csv: energy_j .*, gate energy_j<-200%' "$f" regress new.csv old.csv --fail-if 'energy_j<-200%'
awk -F, -v OFS=, '$2 == "energyucb" { $3 *= 1 + 0.1 * ++n } 1' old.csv >spread.csv # its seeds differ
awk -F, -v OFS=, '$2 == "energyucb" { $3 *= 1.02 } 1' spread.csv | { read -r head && echo "$head" && tac; } >tac.csv
fails "the order of lines does not matter" '^FAIL  energyucb on demo.csv: energy_j .*\+2 %' "$f" regress spread.csv tac.csv --fail-if 'energy_j>+0.5%'
sed '/^demo.csv,energyucb,/{p;}' old.csv >twice.csv
refuse "a row that stands twice" 2 "twice.csv:.*policy 'energyucb' .* expected each row once" "$f" regress old.csv twice.csv
awk -F, '!($2 == "energyucb" && ++n == 3)' old.csv >fewer.csv
succeed "a run that is gone" '^note  energyucb on demo.csv: 2 runs, before 3' "$f" regress old.csv fewer.csv --fail-if 'energy_j>+100%'
sed 's/,depo,/,odpp,/' old.csv >other.csv
fails "a policy that is gone" '^FAIL  depo on demo.csv: recorded, but not there any more' "$f" regress old.csv other.csv

succeed "the same runs under another bound" written "$f" compare two.json --bound 20% -o loose.csv
succeed "the bound is said" 'different options: .*"bound":null.* and .*"bound":0.2' sh -c '"$0" regress old.csv loose.csv 2>&1' "$f"
mkdir away && cp demo.csv demo.kinds.csv away/
sed "s|demo.csv|$dir/away/demo.csv|" two.json >away/two.json
succeed "the same runs of files in another place" written "$f" compare away/two.json -o away/old.csv
succeed "hold" '^12 of 12 gates hold' sh -c '"$0" regress old.csv away/old.csv 2>&1' "$f"
check "and nothing is said to differ" test "$(grep -c different out)" = 0
refuse "a seed of two results" 2 '^foldline regress: --seed has no effect on two results' "$f" regress old.csv new.csv --seed 4
refuse "a second result that is not there" 2 'gone.csv: cannot open: No such file' "$f" regress old.csv gone.csv

# ---- a promise ----
cat >serve.json <<EOT
{"foldline_experiment": 1, "platform": "a100", "gpus": 1, "traces": ["$root/traces/samples/inference.csv"], "oracles": false,
 "arrivals": "poisson:rate=20,count=100,seed=1", "policies": ["nvboost", "fixed:sm_mhz=1005", "fixed:sm_mhz=810"]}
EOT
succeed "recorded under a promise" 'recorded: serve.base.json' "$f" regress serve.json --bless -o serve.base.json --bound 'latency_p99_s<0.17'
check "which the record keeps" grep -q '"latency_p99_s<0.17"' serve.base.json
succeed "it holds" 'gates hold' "$f" regress serve.base.json
fails "a tighter promise is broken, by name" '^FAIL  fixed:sm_mhz=1005 .*violated 0 -> 1 .*breaks latency_p99_s<0.1$' \
  "$f" regress serve.base.json --bound 'latency_p99_s<0.1'
fails "also where no rule speaks of violations" 'breaks energy_per_request_j<1$' "$f" regress serve.base.json --fail-if 'energy_j>+1%' \
  --bound 'energy_per_request_j<1'
sed 's/latency_p99_s</latency_p_s</' serve.base.json >odd.base.json
refuse "a record with a promise about nothing" 2 "odd.base.json: bounds: no column 'latency_p_s'" "$f" regress odd.base.json
refuse "a promise about nothing" 2 "did you mean 'latency_p99_s'" "$f" regress serve.base.json --bound 'latency_p99<0.1'
finish
