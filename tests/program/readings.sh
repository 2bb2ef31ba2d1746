#!/usr/bin/env bash
# A sweep may say how the board's utilisation readings were spread. Its replay draws them: mean and deviation of a
# hand-made sweep come out, in whole percent from 0 to 100, by every way of advancing and at any number of threads.
. "$(dirname "$0")/shell.sh"
export FOLDLINE_SHARE=$PWD/models
head=workload,sm_mhz,mem_mhz,time_s,power_w
sweep=$dir/s.csv telemetry=$dir/t.csv

# moments COLUMN: mean, deviation, least, largest, number of values, number of those that are not whole
moments() {
  awk -F, -v name="$1" '/^#/ {next} !at {for (i = 1; i <= NF; i++) if ($i == name) at = i; next}
    $at != "" {v = $at; n++; s += v; q += v * v; a = n == 1 || v < a ? v : a; b = n == 1 || v > b ? v : b; w += v != int(v)}
    END {m = s / n; printf "%.3f %.3f %g %g %d %d", m, sqrt(q / n - m * m), a, b, n, w}' "$telemetry"
}
# watch MHZ SEED [OPTIONS]: readings of 700 s, one for each refresh
watch() {
  "$f" run "$sweep" --platform v100-300w --policy "fixed:sm_mhz=$1" --seed "$2" --telemetry "$telemetry" --every-ms 170 \
    "${@:3}" >"$dir/out" 2>&1 || bad "run at $1 MHz" "$(cat "$dir/out")"
}
# seen COLUMN MEAN DEVIATION: within four standard errors and what rounding adds, over more than 4,000 readings
seen() {
  local got
  got=$(moments "$1")
  check "$1: $got, stated $2 and $3" awk -v got="$got" -v m="$2" -v sd="$3" 'function abs(x) {return x < 0 ? -x : x}
    BEGIN {split(got, x, " "); sd = sqrt(sd * sd + 1 / 12)
      exit !(x[5] > 4000 && !x[6] && abs(x[1] - m) < 4 * sd / sqrt(x[5]) && abs(x[2] - sd) < 3 * sd / sqrt(x[5]) &&
        x[3] >= 0 && x[4] <= 100)}'
}

printf '%s,util_gpu_pct,util_gpu_sd,util_mem_pct,util_mem_sd\n' $head >"$sweep"
printf 'w,885,877,700,100,60,5,30,3\nw,1530,877,700,200,40,8,50,6\n' >>"$sweep"
watch 885 1
seen util_gpu_pct 60 5
seen util_mem_pct 30 3
cp "$telemetry" "$dir/first.csv"
for path in plain vector prefix events; do
  watch 885 1 --path $path
  check "the same readings by --path $path" cmp "$telemetry" "$dir/first.csv"
done
watch 885 2
check "another seed, other readings" test "$(cmp -s "$telemetry" "$dir/first.csv"; echo $?)" = 1
watch 1530 1
seen util_gpu_pct 40 8
seen util_mem_pct 50 6
watch 1207 1 # half way between the two clocks
seen util_gpu_pct 50 6.5
seen util_mem_pct 40 4.5

# Readings end at 0 and 100: of a normal with mean 98 and deviation 10, a share of 44 % is 100 (from 99.5 on).
printf '%s,util_mem_pct,util_mem_sd\nw,885,877,700,100,98,10\nw,1530,877,700,200,2,10\n' $head >"$sweep"
watch 885 1
top=$(moments util_mem_pct)
check "no reading above 100: $top" awk -v got="$top" 'BEGIN {split(got, x, " "); exit !(x[4] == 100 && x[1] > 93 && x[1] < 95.5)}'
check "the GPU's readings were not stated: it is busy all the time" awk -v got="$(moments util_gpu_pct)" \
  'BEGIN {split(got, x, " "); exit !(x[1] > 99.9 && x[4] == 100)}'
watch 1530 1
check "none below 0" awk -v got="$(moments util_mem_pct)" 'BEGIN {split(got, x, " "); exit !(x[3] == 0 && x[1] > 4.5 && x[1] < 7)}'

# UtilizScale takes the clock that the GPU's utilisation asks for. The result depends on no number of threads or path.
printf '%s,util_gpu_pct,util_gpu_sd,util_mem_sd\n' $head >"$sweep"
printf 'w,885,877,140,100,80,4,9\nw,1530,877,100,200,75,4,9\nv,885,877,150,90,,,\nv,1530,877,100,190,,,\n' >>"$sweep"
all=(compare "$sweep" --platform v100-300w --policy utilizscale --policy assure --seeds 3)
"$f" "${all[@]}" --threads 1 -o "$dir/one.csv" >"$dir/out" 2>&1
"$f" "${all[@]}" --threads 2 --path plain -o "$dir/two.csv" >"$dir/out" 2>&1
check "compare: the same bytes at 1 and 2 threads" cmp "$dir/one.csv" "$dir/two.csv"
time_of() { awk -F, -v w="$1" '$1 == w && $2 == "utilizscale" {s += $4; n++} END {printf "%.0f\n", s / n}' "$dir/one.csv"; }
check "75 % busy: a lower clock" test "$(time_of w)" -gt 110
check "readings are not known: busy, the top clock" test "$(time_of v)" = 100

# Columns without values change nothing.
printf '%s\nw,885,877,140,100\nw,1530,877,100,200\n' $head >"$sweep"
"$f" "${all[@]}" -o "$dir/one.csv" >"$dir/out" 2>&1
printf '%s,util_gpu_pct,util_mem_sd\nw,885,877,140,100,,\nw,1530,877,100,200,,N/A\n' $head >"$sweep"
"$f" "${all[@]}" -o "$dir/two.csv" >"$dir/out" 2>&1
check "empty columns are none" cmp "$dir/one.csv" "$dir/two.csv"
printf '%s,util_mem_sd\nw,1,1,1,1,101\n' $head >"$sweep"
refuse "a reading above 100" 2 "s.csv:2:11: util_mem_sd is '101', expected a number from 0 to 100" \
  "$f" compare "$sweep" --platform v100-300w
finish
