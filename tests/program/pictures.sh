#!/usr/bin/env bash
# Pictures and the page, by the program from end to end: what the page leads with, what needs gnuplot and what does not,
# and that the README's pictures are what its commands draw.
. "$(dirname "$0")/shell.sh"

"$f" compare harness/experiments/first-light.json -o "$dir/one.csv" >/dev/null
"$f" run traces/samples/launches.csv --platform generic --policy nvboost --timeline "$dir/time.csv" --every-ms 0.5 >/dev/null

# ---- the page ----
succeed "a page" written "$f" report "$dir/one.csv" -o "$dir/one.html" --timeline "$dir/time.csv"
columns() { # of the table with an id: cells of its head
  awk -v id="id=\"$2\"" 'index($0, id) { head = $0; sub(/.*<thead>/, "", head); sub(/<\/thead>.*/, "", head); print gsub(/<th /, "", head); exit }' "$1"
}
check "its first table has five columns" test "$(columns "$dir/one.html" policies-0)" = 5
check "the rest are behind 'More columns'" grep -q '<details class="more"><summary>More columns</summary>' "$dir/one.html"
check "of which there are some" test "$(columns "$dir/one.html" policies-0-more)" -ge 6
check "how many runs are over the bound" grep -q '>1 of 1</td>' "$dir/one.html"
check "no interval is claimed of one run each" test "$(grep -c '95 %' "$dir/one.html")" = 0
check "its figures are gnuplot's, in the page's colours" grep -q 'color="var(--c1)"\|var(--c1)' "$dir/one.html"
check "and in no others" test "$(grep -c 'rgb(' "$dir/one.html")" = 0
check "marks tell what they are" grep -q '<title>fixed:sm_mhz=1300: energy saved' "$dir/one.html"
"$f" report "$dir/one.csv" -o "$dir/two.html" --timeline "$dir/time.csv" >/dev/null
check "the same page again: same bytes" cmp "$dir/one.html" "$dir/two.html"
requests=(harness/experiments/inference.json --seeds 2)
"$f" grid "${requests[@]}" -o "$dir/q.csv" >/dev/null
succeed "a page of requests" written "$f" report "$dir/q.csv" -o "$dir/q.html"
check "leads with energy and latency" grep -q '<table.*id="policies-0".*energy per request, J</th>.*latency p99, ms</th>' "$dir/q.html"
check "in five columns too" test "$(columns "$dir/q.html" policies-0)" = 5
check "without a bound nobody is over it" test "$(grep -c 'over the bound' "$dir/q.html")" = 0
check "in its first figure" grep -q 'Energy per request against latency' "$dir/q.html"

printf '%s\n' workload,policy,energy_j,slowdown,energy_saving_pct,seed,clock \
  one,baseline:static,90,0.1,10,1,sm_mhz=937 two,baseline:static,91,0.1,9,1,sm_mhz=1402 \
  one,p,90,0.1,10,1, two,p,91,0.1,9,1, >"$dir/clocks.csv"
"$f" report "$dir/clocks.csv" -o "$dir/clocks.html" --no-figures >/dev/null
check "clocks of a static choice stand beside their workloads" grep -q 'baseline:static is one: sm_mhz=937, two: sm_mhz=1402\.' "$dir/clocks.html"
printf '%s\n' workload,policy,energy_j,slowdown,energy_saving_pct,seed one,baseline:default,100,0,0,1 one,baseline:default,100,0,0,2 \
  one,baseline:static,90,0.1,10,1 one,p,90,0.1,10,1 one,p,90,0.1,10,2 >"$dir/fewer.csv"
"$f" report "$dir/fewer.csv" -o "$dir/fewer.html" --no-figures >/dev/null
check "a mean over fewer runs is marked" grep -q 'static \*</th>' "$dir/fewer.html"
check "with how many" grep -q 'It has: baseline:static 1 of 2\.' "$dir/fewer.html"
check "and no other mean is" test "$(grep -o ' \*</th>' "$dir/fewer.html" | wc -l)" = "$(grep -o 'static \*</th>' "$dir/fewer.html" | wc -l)"

# ---- what each rank did ----
for mhz in 1410 1200; do
  "$f" run traces/samples/four-stages.pipeline.csv --platform a100 --policy fixed:sm_mhz=$mhz --instructions "$dir/$mhz.csv" >/dev/null 2>&1
done
succeed "a page of a plan" written "$f" report "$dir/one.csv" -o "$dir/plan.html" --instructions "$dir/1410.csv"
check "says what is drawn" grep -q 'One plan: tall bars are backward' "$dir/plan.html"
check "in two drawings" test "$(sed -n '/<section id="instructions">/,/<\/section>/p' "$dir/plan.html" | grep -c '<svg')" = 2
succeed "of two plans" written "$f" report "$dir/one.csv" -o "$dir/plans.html" --instructions "$dir/1410.csv" --instructions "$dir/1200.csv"
check "says so too" grep -q 'Two plans: tall bars' "$dir/plans.html"
head -n 1 "$dir/1410.csv" >"$dir/head.csv"
cut -c 1-15 "$dir/1410.csv" >"$dir/narrow.csv"
ranks() { "$f" report "$dir/one.csv" -o "$dir/x.html" --instructions "$@"; }
refuse "three plans" 2 '3 files, expected one or two' ranks "$dir/1410.csv" --instructions "$dir/1200.csv" --instructions "$dir/1410.csv"
refuse "a plan that is not there" 2 'none.csv: cannot open' ranks "$dir/none.csv"
refuse "a result as a plan" 2 "one.csv:1:1: unknown column 'workload', expected one of rank, what" ranks "$dir/one.csv"
refuse "a plan without a column" 2 "narrow.csv:1:11: column 'microbatch' is missing" ranks "$dir/narrow.csv"
refuse "a plan of nothing" 2 'head.csv: no row below the head, expected the file of run --instructions' ranks "$dir/head.csv"
refuse "as the second" 2 'head.csv: no row below the head' ranks "$dir/1410.csv" --instructions "$dir/head.csv"
check "leaves nothing" test ! -e "$dir/x.html"

# ---- without gnuplot ----
mkdir "$dir/bin"
refuse "a picture without gnuplot" 3 'cannot find gnuplot.*gnuplot-nox' env PATH="$dir/bin" "$f" plot pareto "$dir/one.csv" -o "$dir/x.svg"
refuse "a page without gnuplot" 3 'cannot find gnuplot.*gnuplot-nox' env PATH="$dir/bin" "$f" report "$dir/one.csv" -o "$dir/x.html"
check "leaves nothing either" test ! -e "$dir/x.html" -a ! -e "$dir/x.svg"
succeed "tables need none" written env PATH="$dir/bin" "$f" report "$dir/one.csv" -o "$dir/tables.html" --no-figures
for drawn in timeline instructions; do
  refuse "no file of --$drawn goes unread" 2 "--$drawn has no effect with --no-figures" \
    "$f" report "$dir/one.csv" -o "$dir/unread.html" --no-figures --$drawn "$dir/nowhere.csv"
done
check "and have no figure" test "$(grep -c '<figure' "$dir/tables.html")" = 0
refuse "an option that is none" 2 'no-figure' "$f" report "$dir/one.csv" -o "$dir/x.html" --no-figure

# ---- standard streams, packed ----
"$f" plot ranks "$dir/one.csv" -o "$dir/plain.svg" >/dev/null
"$f" plot ranks "$dir/one.csv" -o - >"$dir/out.svg" 2>/dev/null
check "a picture to the standard output is an SVG" cmp "$dir/plain.svg" "$dir/out.svg"
"$f" plot ranks "$dir/one.csv" -o "$dir/plain.svg.gz" >/dev/null
check "a packed one is the same" test "$(gzip -dc "$dir/plain.svg.gz" | cksum)" = "$(cksum <"$dir/plain.svg")"

# ---- options ----
"$f" plot pareto "$dir/one.csv" -o "$dir/width.svg" --width 500 --title 'My figure' >/dev/null
"$f" plot pareto "$dir/one.csv" -o "$dir/long.svg" --width 400 --title 'A title that is far too long for one line of this picture' >/dev/null
check "a subtitle stands below the last line of a title" awk '/translate\(20/ { sub(/.*translate\([0-9.]+,/, ""); y = $0 + 0 } /picture</ { title = y } /528.pot3d on pvc/ { about = y } END { exit !(title > 0 && about >= title + 15) }' "$dir/long.svg"
check "a width" grep -q 'width="500"' "$dir/width.svg"
check "a title in place of the kind's" test "$(grep -c 'My figure' "$dir/width.svg"):$(grep -c '>Energy saved against slowdown<' "$dir/width.svg")" = 1:0
check "and its subtitle" grep -q '528.pot3d on pvc' "$dir/width.svg"
"$f" plot pareto "$dir/one.csv" -o "$dir/bare.svg" --title none >/dev/null
check "no title" test "$(grep -c '528.pot3d on pvc\|>Energy saved against slowdown<' "$dir/bare.svg")" = 0
"$f" plot pareto "$dir/one.csv" -o "$dir/font.svg" --width 900 --font-size 18 >/dev/null
check "labels of 18 pixels: 12 of a layout of 600, shown at 900" grep -q 'viewBox="0 0 600 ' "$dir/font.svg"
check "which is the width asked for" grep -q 'width="900"' "$dir/font.svg"
"$f" plot pareto "$dir/one.csv" -o "$dir/font.png" --width 900 --font-size 18 >/dev/null
check "of a PNG as well" test "$(od -An -tu1 -j16 -N4 "$dir/font.png" | awk '{ print $3 * 256 + $4 }')" = 1800
"$f" plot pareto "$dir/one.csv" -o "$dir/some.svg" --policy assure --policy nvboost >/dev/null
check "some policies" test "$(grep -c 'assure:theta=0.9\(5\|\)<' "$dir/some.svg"):$(grep -c 'nvboost<' "$dir/some.svg"):$(grep -c 'sweetspot\|utilizscale' "$dir/some.svg")" = 2:1:0
check "beside the baselines" grep -q 'clairvoyant<' "$dir/some.svg"
refuse "no such policy" 2 "no policy 'asure' in the result, expected a label" "$f" plot pareto "$dir/one.csv" -o "$dir/x.svg" --policy asure
refuse "policies of what has none" 2 '--policy has no effect on plot timeline' "$f" plot timeline "$dir/time.csv" -o "$dir/x.svg" --policy assure
refuse "no room" 2 'a width of 300 is too small for this font, expected 360 or more' "$f" plot pareto "$dir/one.csv" -o "$dir/x.svg" --width 300

# ---- a paper's numbers beside ours ----
"$f" compare harness/experiments/first-light.json -o "$dir/none.csv" >"$dir/out"
refuse "no paper's numbers" 2 'no published number beside it' "$f" plot published "$dir/none.csv" -o "$dir/x.svg"
cp "$dir/none.csv" "$dir/paper.csv"
cat >"$dir/paper.published.json" <<'END'
{"published": [
 {"quantity": "saved", "unit": "%", "block": "claim", "kind": "predicted", "published_low": 20, "published_high": 20, "simulated": 25, "verdict": "reproduced"},
 {"quantity": "slower", "unit": "%", "block": "claim", "kind": "calibrated", "published_low": 4, "published_high": 4, "simulated": 2, "verdict": "not reproduced"},
 {"quantity": "around zero", "unit": "%", "block": "claim", "kind": "predicted", "published_low": 0, "published_high": 3, "simulated": 2, "verdict": "reproduced"},
 {"quantity": "an input", "unit": "W", "block": "detail", "kind": "input", "published_low": 3, "published_high": 3, "simulated": 3, "verdict": ""}]}
END
check "a paper's numbers" "$f" plot published "$dir/paper.csv" -o "$dir/paper.svg"
for text in '20 / 25 %' '4 / 2 %' 'saved' 'slower'; do
  check "has '$text'" grep -qF "$text" "$dir/paper.svg"
done
check "inputs and ranges around zero are left out" test "$(grep -cE 'around zero|an input' "$dir/paper.svg")" = 0

# ---- the same bytes, and the README's ----
for kind in pareto regret intervals ranks; do
  for n in 1 2; do "$f" plot $kind "$dir/one.csv" -o "$dir/$kind$n.svg" || bad "plot $kind"; done
  check "plot $kind again: same bytes" cmp "$dir/${kind}1.svg" "$dir/${kind}2.svg"
done
"$f" synth --mix traces/samples/mix8.kinds.csv --seconds 4 --mean-us 50000 --platform rtx4070-laptop -o "$dir/mix.csv" >/dev/null
"$f" run "$dir/mix.csv" --platform rtx4070-laptop --policy maxfreq --timeline "$dir/wall.csv" >/dev/null
"$f" plot timeline "$dir/wall.csv" -o "$dir/readme-wall.svg"
cp "$dir/pareto1.svg" "$dir/readme-pareto.svg"
for picture in readme-pareto readme-wall; do
  if [ "$(grep -m1 -o 'GNUPLOT.*' plots/$picture.svg)" = "$(grep -m1 -o 'GNUPLOT.*' "$dir/$picture.svg")" ]; then
    check "plots/$picture.svg is what its command draws" cmp <(drawn plots/$picture.svg) <(drawn "$dir/$picture.svg")
  else # another gnuplot draws the same with other bytes
    echo "skipped - plots/$picture.svg was drawn by another gnuplot"
  fi
done

printf 'ttft_p99_s,tbt_p99_s,energy_per_token_j,policy\n1,2\n' >"$dir/none.csv"
refuse "a row without its policy" 2 'none.csv:2:1: 2 fields, expected a policy in field 4' "$f" plot serving "$dir/none.csv" -o "$dir/none.svg"
finish
