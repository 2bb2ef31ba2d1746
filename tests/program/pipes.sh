#!/usr/bin/env bash
# "-" for the standard streams, gzipped files everywhere, foldline show, --json, --version.
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1
how=(--platform generic --policy nvboost)
"$f" synth -o t.csv --kernels 800 --seed 3 >/dev/null || bad "synth"
gzip -k t.csv
same() { # NAME FILE FILE
  check "$1" cmp "$2" "$3"
}
# to FILE COMMAND...: the standard output into FILE, messages into $dir/err
to() {
  local file=$1
  shift
  "$@" >"$file" 2>"$dir/err" || bad "$*" "$(head -c 300 "$dir/err")"
}

# --- the standard input
"$f" run t.csv "${how[@]}" --log a.log --timeline a.line >a.txt
to b.txt "$f" run - --kinds t.kinds.csv "${how[@]}" --log b.log < t.csv
same "a run of a file on the standard input decides alike" <(grep -v '^#' a.log) <(grep -v '^#' b.log)
cat t.csv | "$f" run - --kinds t.kinds.csv "${how[@]}" --log c.log >/dev/null
same "and of a pipe" b.log c.log
gzip -c t.csv | "$f" run - --kinds t.kinds.csv "${how[@]}" --log d.log >/dev/null
same "and of a gzipped pipe" b.log d.log
(read -r _; "$f" run - --kinds t.kinds.csv "${how[@]}") <t.csv >out 2>err
check "what another has read of the standard input is not read again" grep -q '^foldline run: <stdin>:1:1: no' err
check "nothing is cached or written beside '-'" [ -z "$(find . -name '-*' -o -name '*cache*')" ]
sed '500s/,/,x/' t.csv | "$f" run - --kinds t.kinds.csv "${how[@]}" >out 2>err
check "an error in the standard input has its place" grep -qE '^foldline run: <stdin>:500:3: process' err
refuse "'-' is read once" 2 "'-' is read 2 times" "$f" run - --kinds - "${how[@]}"
refuse "also in a policy's table" 2 "'-' is read 2 times" "$f" compare - --platform generic --policy static-table:table=-
refuse "nothing comes" 2 '<stdin>: the file is empty' "$f" run - "${how[@]}"
cp "$root/traces/samples/powercap.sweep.csv" s.csv
cp "$root/harness/experiments/first-light.json" e.json
sed "s,\"\.\./\.\./,\"$root/," e.json >x.json
"$f" compare x.json -o x.csv >/dev/null
to x2.csv "$f" compare - -o - <x.json
same "an experiment comes on the standard input, its rows go to the standard output" x.csv x2.csv
check "what is told goes to the standard error then" grep -q '^written: -' err
cp "$root/models/platforms/generic.json" p.json
to p.txt "$f" run t.csv --platform - --policy nvboost < p.json
check "a platform too" grep -q energy p.txt
mkfifo pipe
(cat p.json >pipe) &
check "and through a named pipe" "$f" run t.csv --platform ./pipe --policy nvboost
wait
check "a pipe of the shell holds any format" "$f" import <(cat s.csv) -o s2.csv
# By position, each command finds by the content what comes through a pipe.
sweep=$root/traces/samples/energyucb-528.pot3d.csv
succeed "a sweep: compare" '^nvboost ' "$f" compare <(cat "$sweep") --platform pvc-max1550x6 --no-oracle --policy nvboost
succeed "a sweep: advise" '^528.pot3d: [0-9]+ MHz' "$f" advise <(cat "$sweep")
succeed "a sweep: show" '^a sweep: 9 rows' "$f" show <(cat "$sweep")
succeed "a gzipped sweep: run" '^makespan ' "$f" run <(gzip -c "$sweep") --platform pvc-max1550x6 --policy nvboost
succeed "kernels: run" '^makespan ' "$f" run <(cat t.csv) --kinds t.kinds.csv "${how[@]}"
succeed "a pipeline: run" '^makespan ' "$f" run <(cat "$root/traces/samples/four-stages.pipeline.csv") --platform a100-pcie --policy nvboost
(cat "$sweep" >pipe) &
succeed "a sweep through a named pipe" '^nvboost ' "$f" compare pipe --platform pvc-max1550x6 --no-oracle --policy nvboost
wait

seq 200000 >big
mkdir tmp
export TMPDIR=$dir/tmp
cat big | (ulimit -f 100; trap '' XFSZ; "$f" run - "${how[@]}") >out 2>err
check "what does not fit into TMPDIR is told" [ $? = 3 ]
check "with its name" grep -q '^foldline run: <stdin>: cannot be kept in .*/tmp, which TMPDIR names: File too large' err
mkfifo hold
exec 9<>hold
"$f" run - "${how[@]}" <hold >out 2>err &
cat t.csv >&9
kill -9 $!
wait $! 2>/dev/null
exec 9>&-
check "a kill leaves nothing there" [ -z "$(ls -A tmp)" ]
TMPDIR=$dir/none "$f" run - --kinds t.kinds.csv "${how[@]}" >out 2>err < <(cat t.csv)
check "a TMPDIR that is not there is told" grep -q 'none: cannot keep a temporary file there' err
unset TMPDIR

# --- the standard output
for what in log timeline telemetry requests iterations; do
  more=()
  [ $what = requests ] && more=(--arrivals poisson:rate=100,count=20)
  "$f" run t.csv "${how[@]}" "${more[@]}" --$what file.$what >/dev/null 2>&1 || continue
  to out.$what "$f" run t.csv "${how[@]}" "${more[@]}" --$what -
  same "run --$what - is the file" file.$what out.$what
done
to r.csv "$f" grid x.json -o -
"$f" grid x.json -o r2.csv >/dev/null
same "grid -o - is the file" r.csv r2.csv
check "and leaves no journal" [ -z "$(find . -name '*journal*')" ]
"$f" grid x.json -o sh.csv --shard 1/2 >/dev/null
"$f" grid x.json -o sh.csv --shard 2/2 >/dev/null
to m.csv "$f" grid --merge sh.csv.shard-1-of-2 - -o - <sh.csv.shard-2-of-2
same "merge takes a shard from one end and gives the rows to the other" m.csv r2.csv
to half.csv "$f" grid x.json -o - --shard 1/2
same "and a shard of it too" half.csv sh.csv.shard-1-of-2
to r.html "$f" report r2.csv -o -
check "report -o -" grep -q '</html>' r.html
to bl.json "$f" regress x.json --bless -o -
check "regress --bless -o -" grep -q foldline_baseline bl.json
succeed "a baseline comes on the standard input" 'gates hold' bash -c "'$f' regress - <bl.json"
to j.xml "$f" regress bl.json --junit -
check "regress --junit -" grep -q '</testsuite>' j.xml
to i.csv "$f" import t.csv -o -
same "import -o -" i.csv t.csv
refuse "two outputs on '-'" 2 "are both '-'" "$f" run t.csv "${how[@]}" --log - --timeline -
refuse "--json beside one" 2 "'-' and --json" "$f" run t.csv "${how[@]}" --log - --json
refuse "a trace whose kinds lie beside it" 2 "kinds need another" "$f" synth -o - --kernels 10
"$f" run t.csv "${how[@]}" --log - >/dev/full 2>err
check "a full standard output is told" [ $? = 3 ]
check "by its name" grep -q '^foldline run: <stdout>: cannot write' err
sed '500s/,/,x/' t.csv >broken.csv
"$f" import broken.csv -o - >out 2>err
check "a broken input gives nothing" [ ! -s out ]
touch -- ./-
check "a file of that name is ./-" "$f" import t.csv -o ./-
same "and is written" ./- t.csv
rm ./-

# --- gzip
for name in "$root"/traces/samples/sweetspot-blackscholes.csv s.csv; do
  gzip -c "$name" >in.csv.gz
  to plain.txt "$f" import "$name" -o plain.csv
  to packed.txt "$f" import in.csv.gz -o packed.csv
  same "$(basename "$name") gzipped is the same" plain.csv packed.csv
done
gzip -c p.json >p.json.gz
gzip -c x.json >x.json.gz
check "a platform may be gzipped" "$f" run t.csv --platform ./p.json.gz --policy nvboost
"$f" compare x.json.gz -o z.csv.gz >/dev/null
check "an experiment may be, and results are where their name says so" cmp <(zcat z.csv.gz) x.csv
"$f" compare x.json.gz -o z2.csv.gz >/dev/null
same "the same bytes each time" z.csv.gz z2.csv.gz
check "with their record beside" [ -s z.provenance.json ]
check "a report reads them" "$f" report z.csv.gz -o z.html.gz
check "and may be gzipped itself" bash -c "zcat z.html.gz | grep -q '</html>'"
gzip -kf r2.csv
check "one that was packed later has the same record" "$f" report r2.csv.gz -o r2.html
zcat z.csv.gz >z.csv
check "and one that was unpacked" "$f" report z.csv -o z.html
sed '2s/[0-9]/7/2' z.csv | gzip >z.csv.gz
refuse "another's record is refused, packed or not" 2 'z.provenance.json: the record of another result' "$f" report z.csv.gz -o no.html
gzip -c r2.csv | "$f" report - -o r3.html >/dev/null
check "a report of the standard input" grep -q '</html>' r3.html
gzip -c bl.json >bl.json.gz
succeed "a baseline may be" 'gates hold' "$f" regress bl.json.gz
"$f" run t.csv.gz "${how[@]}" --log l.csv.gz >/dev/null
succeed "a log may be" ' 0 differ' "$f" verify l.csv.gz
gzip -c sh.csv.shard-2-of-2 >second.gz
"$f" grid --merge sh.csv.shard-1-of-2 second.gz -o m.csv.gz >/dev/null
check "shards may be" cmp <(zcat m.csv.gz) r2.csv
head -c 2000 t.csv.gz >cut.csv.gz
refuse "a cut one is told by its name" 2 'cut.csv.gz: the gzip data is cut off' "$f" import cut.csv.gz -o no.csv
(head -c 1500 t.csv.gz; printf 'x%.0s' {1..40}; tail -c +1541 t.csv.gz) >bad.csv.gz
refuse "and a damaged one" 2 'bad.csv.gz:.*the gzip data is damaged' "$f" import bad.csv.gz -o no.csv
(head -n 30 t.csv; yes "# a line that packs well" | head -c 300M) | gzip >bomb.csv.gz
refuse "a bomb is refused" 2 'bomb.csv.gz: the gzip data unpacks to more than 200 times its size' \
  "$f" import bomb.csv.gz --format foldline-kernels -o no.csv
check "nothing was written" [ ! -e no.csv ]
"$f" grid x.json -o full.csv.gz >/dev/null
cp full.csv.gz before
(ulimit -f 1; trap '' XFSZ; "$f" compare x.json -o full.csv.gz) >out 2>err
check "a full disk is told" [ $? = 3 ]
check "a full disk leaves the old file" cmp before full.csv.gz

# --- foldline show
check "a result fits 80 columns" [ "$("$f" show r2.csv | grep -v ': ' | awk '{ print length }' | sort -n | tail -1)" -le 80 ]
wide() { COLUMNS=$1 "$f" show r2.csv | sed -n 3p | wc -w; }
check "COLUMNS says how wide" [ "$(wide 200)" -gt "$(wide 80)" ]
check "down to 20" [ "$(wide 10)" = "$(wide 20)" ]
check "which is narrower than 80" [ "$(wide 10)" -lt "$(wide 80)" ]
succeed "the help says so" 'at least 20' "$f" show --help all
printf '# x: \033[2J\nname,v\n"a\033[2J\nb",1\n' >escape.csv
check "a terminal gets no command from a file" [ -z "$("$f" show escape.csv --head | tr -cd '\033')" ]
succeed "but a mark in its place" '^a[?][[]2J[?]b +1' "$f" show escape.csv
if command -v script >/dev/null; then
  columns=$(COLUMNS=80 script -qec "stty cols 140; '$f' show r2.csv" /dev/null </dev/null | sed -n 3p | tr -d '\r' | wc -w)
  check "a terminal comes first" [ "$columns" -gt "$(wide 80)" ]
fi
succeed "what is left out is named" '^left out, for they do not fit: .*slowdown' "$f" show r2.csv
succeed "columns are as asked" '^policy +energy_j$' "$f" show r2.csv --columns policy,energy_j
best=$(tail -n +2 r2.csv | sort -t, -k3,3g | head -1 | cut -d, -f2)
check "rows are sorted" [ "$("$f" show r2.csv --columns policy,energy_j --sort energy_j | sed -n '2s/ .*//p')" = "$best" ]
count=$(awk -F, 'NR > 1 && $3 < 50' r2.csv | wc -l)
rows() { "$f" show r2.csv --json "$@" | grep -c '"energy_j"'; }
check "and chosen" [ "$(rows --where 'energy_j<50')" = "$count" ]
check "and both conditions hold" [ "$(rows --where 'energy_j<50' --where 'energy_j>=50')" = 0 ]
check "and counted" [ "$(rows --rows 2)" = 2 ]
check "JSON carries every digit" bash -c "'$f' show r2.csv --json | grep -qF '$(sed -n 2p r2.csv | cut -d, -f3)'"
check "digits as asked" bash -c "'$f' show r2.csv --columns energy_j --digits 17 | grep -qF '$(sed -n 2p r2.csv | cut -d, -f3)'"
succeed "the record is printed on demand" '^policy_archive_sha256' "$f" show r2.csv --head
for name in a.log file.timeline file.telemetry t.csv s.csv; do
  succeed "show $name" '[a-z]' "$f" show "$name"
done
"$f" run t.csv "${how[@]}" --json >run.json
samples=$root/traces/samples
"$f" plan "$samples/four-stages.pipeline.csv" --slowdown 5% -o p.plan.csv >/dev/null
printf '# foldline-arrivals 1\ntime_s\n0.5\n' >arrivals.csv
while IFS='|' read -r name line; do
  "$f" show "$name" >out 2>notes
  check "the first line says what it is: ${name##*/}" grep -qxE "$line" <(head -n 1 out)
done <<END
r2.csv|a result: [0-9]+ rows, [0-9]+ columns
a.log|a log of decisions: [0-9]+ rows, [0-9]+ columns
run.json|JSON: [0-9]+ values
bl.json|a baseline: [0-9]+ rows, [0-9]+ columns
x.json|an experiment: [0-9]+ (values|rows.*)
$root/models/platforms/generic.json|a platform: [0-9]+ (values|rows.*)
$samples/energyucb-528.pot3d.csv|a sweep: 9 rows, 8 columns
$samples/dynaco.programs.csv|programs: 45 rows, 9 columns
$samples/four-stages.pipeline.csv|a pipeline: [0-9]+ rows, 5 columns
$samples/serving/rtx4090-llama3.1-8b.serving.csv|a server: [0-9]+ rows, 4 columns
$samples/azure/conversation.requests.csv|requests: [0-9]+ rows, 3 columns
$samples/mix8.kinds.csv|kernel classes: 8 rows, 10 columns
p.plan.csv|a plan: [0-9]+ rows, 5 columns
arrivals.csv|arrivals: 1 row, 1 column
$root/tests/fuzz/seeds/zeus/two.csv|a sweep: [0-9]+ rows, [0-9]+ columns
escape.csv|a table: 1 row, 2 columns
t.csv|format +foldline-kernels: .*
END
check "the JSON says so too" grep -q '"type":.*"a result"' <("$f" show r2.csv --json)
check "rows that are asked for have no such line" grep -q '^policy' <("$f" show r2.csv --columns policy | head -n 1)
succeed "what a command printed as JSON" '^energy_j +[0-9]' "$f" show run.json
succeed "of a pipe" 'energy_j' bash -c "gzip -c r2.csv | '$f' show -"
succeed "several" '^bl.json$' "$f" show r2.csv bl.json
refuse "no such column" 2 "no column 'energy'" "$f" show r2.csv --sort energy
refuse "no such operator" 2 "expected COLUMN and one of" "$f" show r2.csv --where energy_j
refuse "nothing to show" 2 'expected FILE' "$f" show
refuse "no table" 2 'README.md:1:1: not recognised' "$f" show "$root/README.md"
printf 'policy,energy_j\na,1\nb' >torn.csv
refuse "a torn one" 2 'torn.csv:3:1: row has 1 fields' "$f" show torn.csv

# --- which foldline this is
succeed "--version" '^foldline [0-9.]+( \([0-9a-f]{12}\+?\))?$' "$f" --version
check "-V is the same" [ "$("$f" -V)" = "$("$f" --version)" ]
for part in sqlite3 yajl zlib expat; do
  check "--version says whether it has $part" grep -qE "^parts: .*\\b$part (yes|no)\\b" <("$f" -V)
done
if git -C "$root" rev-parse HEAD >head 2>/dev/null; then
  check "with the commit of the repository" grep -qF "$(head -c 12 head)" <("$f" -V)
fi
succeed "and the help says so" '--version \(-V\)' "$f" --help

# --- baselines: what was just blessed holds exactly, and nothing is told to have changed
exact=(--fail-if 'energy_j>+0' --fail-if 'makespan_s>+0' --fail-if 'energy_j<-0' --fail-if 'mean_power_w>+0' --fail-if 'mean_power_w<-0')
"$f" regress x.json --bless -o exact.json "${exact[@]}" >/dev/null || bad "regress --bless"
succeed "exact gates hold on a baseline that was just blessed" '^([0-9]+) of \1 gates hold' "$f" regress exact.json
check "and no value moved" [ -z "$("$f" regress exact.json --all | grep -v ' (+0, interval +0 to +0), \| gates hold')" ]
succeed "blessed again it is the same" 'recorded' "$f" regress exact.json --bless -o again.json
same "to the byte" exact.json again.json

finish
