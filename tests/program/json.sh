#!/usr/bin/env bash
# --json of every command that prints results: one object, whose rows foldline show reads back.
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1
samples=$root/traces/samples

# json NAME PATTERN COMMAND...: prints one JSON object and nothing else, in which show finds a line that matches
json() {
  local name=$1 pattern=$2
  shift 2
  if "$@" --json >"$dir/out.json" 2>"$dir/err" </dev/null && "$f" show out.json --rows 0 >"$dir/out" 2>>"$dir/err" &&
    [ "$(head -c 1 out.json)" = '{' ] && grep -qE -- "$pattern" "$dir/out"; then
    ok "$name --json"
  else
    bad "$name --json" "$(head -c 300 "$dir/err")" "$(head -c 300 out.json)"
  fi
}
has() { # NAME PATTERN: in the object that was printed last
  check "$1" grep -qE -- "$2" out.json
}

sed "s,\"\.\./\.\./,\"$root/," "$root/harness/experiments/first-light.json" >x.json
"$f" synth -o t.csv --kernels 1500 --mean-us 3000 --seed 3 >/dev/null
how=(--platform generic --policy nvboost)

json grid '^jobs +[1-9]' "$f" grid x.json -o r.csv
"$f" grid x.json -o plain.csv >/dev/null
check "and the option is no part of the key" cmp r.csv plain.csv
"$f" grid x.json -o s.csv --shard 1/2 >/dev/null
"$f" grid x.json -o s.csv --shard 2/2 --json >/dev/null
json merged '^shards +2$' "$f" grid --merge s.csv.shard-1-of-2 s.csv.shard-2-of-2 -o m.csv
check "merged as one" cmp m.csv r.csv
json search 'candidates|policy' "$f" search x.json
has "with objective and savings" '"objective":'
has "at full precision" '"tuned_saving_pct":[[:space:]]*-?[0-9]+\.[0-9]{6}'
cp t.csv u.csv
echo '{"foldline_experiment": 1, "platform": "generic", "traces": ["t.csv", "u.csv"], "kinds": "t.kinds.csv", "seed": 1,
  "policies": [{"policy": "fixed", "set": {"sm_mhz": {"each": [900, 1200, 1500]}}}]}' >two.json
json "search --hold-out" 'u.csv +fixed' "$f" search two.json --hold-out workload
json "regress --bless" '^rows_recorded +[1-9]' "$f" regress x.json --bless -o b.json
json regress '^ *workload +policy' "$f" regress b.json
has "every gate is a row" '"failed":	0,'
sed 's/"values":	\[\[\([0-9]\)/"values":	[[1\1/' b.json >worse.json
"$f" regress worse.json --json --fail-if 'energy_j!1%' >out.json 2>err
check "a gate that does not hold exits with 1" [ $? = 1 ]
has "and is told" '"failed":	true'
json 'list platforms' 'v100-300w' "$f" list platforms
json "list platforms NAME" '^title +Generic|^title' "$f" list platforms generic
check "as its file has it" diff <("$f" show out.json) <("$f" show "$root/models/platforms/generic.json")
json restore '^records +0$' env FOLDLINE_STATE="$dir/state" "$f" restore
"$f" emulate t.csv --platform generic --time virtual --quiet -- "$f" doctor --json --policy assure >out.json 2>err
check "doctor --json" "$f" show out.json
has "with what can be read" '"power_w":	[0-9]'
has "what can be set" '"sm_mhz":	\{'
has "and of the CPU" '"cores":	[1-9]'
check "and nothing else" [ "$(head -c 1 out.json)" = '{' ]
has "a policy that looks at no server" '"server_needs":	\[\]'
"$f" emulate t.csv --platform generic --time virtual --quiet -- "$f" doctor --json --policy agft >out.json 2>err
has "signals of a server that a policy needs" '"server_needs":	\["tbt_sum_ns", "tbt_count"\]'
has "and uses" '"server_uses":	\["waiting", "running"'
"$f" emulate t.csv --platform generic --time virtual --quiet -- "$f" doctor --policy agft >out.json 2>err
has "which doctor says in words" '^  server      needs tbt_sum_ns, tbt_count; uses waiting, running, .*live --server URL'
"$f" emulate t.csv --platform generic --time virtual --quiet -- "$f" doctor --policy assure >out.json 2>err
check "and of no other policy" eval '! grep -q "^  server" out.json'
"$f" list policies tightrope --json >out.json
has "signals of a policy: of the GPU" '"needs":	\{'
has "what it sets" '"gpu":	\["sm_mhz", "records"\]'
"$f" list policies ecofreq --json >out.json
has "of a server" '"server":	\["waiting", "running"'
has "and of its engine's steps" '"engine_steps":	true'
"$f" list policies plan --json >out.json
has "what wakes it" '"woken_by":	\["marker"\]'

"$f" emulate t.csv --platform generic --time virtual --quiet -- "$f" live --policy assure --for 2s --json >out.json 2>err
check "live --json" "$f" show out.json
has "with its mode" '"mode":	"shadow"'
"$f" emulate t.csv --platform generic --time virtual -o - -- "$f" live --policy assure --for 2s >out.json 2>err
check "emulate -o - is the report alone" "$f" show out.json
has "of each process" '"processes":'
check "what the program printed is told elsewhere" grep -q '^assure on 1 GPU' err

json "fit policy capping" '^application +part' "$f" fit policy capping "$samples/powercap.sweep.csv"
has "with the processors" '"processors":'
awk 'BEGIN { print "workload,sm_mhz,mem_mhz,time_s,power_w"
  for (k = 0; k < 6; k++) for (f = 700; f <= 1500; f += 200) { m = k / 6; t = (1 - m) * 1500 / f + m
    printf "w%d,%d,877,%.6f,%.4f\n", k, f, t, 60 + 60 * (1 - m) * f / 1000 + 90 * m / t } }' >active.csv
for mhz in 900 1500; do
  "$f" run t.csv --platform generic --policy fixed --set sm_mhz=$mhz --telemetry log$mhz.csv >/dev/null
done
json "fit logs" '[0-9]' "$f" fit logs log900.csv log1500.csv -o logs.sweep.csv
json "fit trace of a log" '^phase +time_s' "$f" fit trace log900.csv --platform generic -o p.programs.csv
awk -F, -v OFS=, '/^# sm_mhz/ { print "# sm_mhz: 900"; next } /^[0-9]/ { $4 = sprintf("%.0f", $4 * 1.4); $5 = sprintf("%.0f", $5 * 1.4) } 1' t.csv >t900.csv
json "fit trace" '^own_pct +[0-9]' "$f" fit trace t.csv t900.csv --platform generic -o k.csv
"$f" synth --apps 5 --seed 1009 -o apps.programs.csv >/dev/null
few=(--platform rtx3080ti --match 'gnn_*' --seconds 30 --step 300)
for k in 1 2 3 4 5; do few+=(--workload gnn_0$k); done
json "fit policy odpp" '^quantity +held_out' "$f" fit policy odpp apps.programs.csv "${few[@]}" --epochs 2

# show --json is UTF-8 with each key once, whatever the table holds.
printf 'name,v,v\nlat\xe9n,1,2\n\xc3\xa9\xc2\x9b\xe2\x82,3,4\n' >latin.csv
"$f" show latin.csv --json >out.json 2>err
check "a result in another code becomes UTF-8" iconv -f UTF-8 -t UTF-8 out.json
has "with U+FFFD for what is none" $'"lat\xef\xbf\xbdn"'
has "and what is one stays" $'"\xc3\xa9\xc2\x9b\xef\xbf\xbd\xef\xbf\xbd"'
has "two columns of a name are two keys" '"v.2":[[:space:]]*2'
echo '[{"a": 1}, {"a": 2, "b": "x"}]' >list.json
succeed "a list of objects is a table" '^ *2 +x' "$f" show list.json

# Every command that prints results has it.
while read -r command; do
  case $command in
  fit | "fit policy" | list | synth* | plot | record | emulate | report | help) continue ;; # files, or parts alone
  esac
  # shellcheck disable=SC2086 # two words, of "fit device"
  check "$command has --json" grep -q -- '--json' <("$f" $command --help)
done < <(all_commands)
finish
