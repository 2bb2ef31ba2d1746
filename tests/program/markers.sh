#!/usr/bin/env bash
# Markers of a program, live: a host that is woken by them in the emulator, what counts as an iteration, and what is refused.
. "$(dirname "$0")/shell.sh"

export FOLDLINE_STATE="$dir/state" FOLDLINE_RUN="$dir/run"
sample=traces/samples/four-stages.pipeline.csv
printf '%s\n' gpu,count,sm_mhz 0,3,1410 0,5,1200 1,8,1305 2,4,1410 2,4,1050 3,8,1410 >"$dir/plan.csv"
emulated() { "$f" emulate "$sample" --platform a100-pcie --repeat 30 --privileged --rings "$dir/rings" "$@"; }
plan() { emulated "${time[@]}" -- "$f" live --policy plan --set plan="$dir/plan.csv" --rings "$dir/rings" --iteration iteration --control --min-set-ms 0 --for 5s "$@"; }

# The host sleeps a second at a time: what it sets in between it sets at markers.
time=(--time virtual)
succeed "a plan at markers" '207 iterations of 207 markers, 0 markers lost' plan -o "$dir/a.csv"
woken() { awk -F, '!/^#/ && $3 == "host" && $5 == 1' "$1" | wc -l; }
steps=$(woken "$dir/a.csv") sets=$(awk -F, '!/^#/ && $3 != "host" && $7 > 0' "$dir/a.csv" | wc -l)
if [ "$steps" -gt 100 ] && [ "$sets" -gt 20 ]; then ok "steps at markers"; else bad "steps at markers" "$steps steps, $sets sets"; fi
succeed "its log is replayed" '0 differ' "$f" verify "$dir/a.csv"
plan -o "$dir/b.csv" >/dev/null 2>&1
check "twice the same" cmp "$dir/a.csv" "$dir/b.csv"
time=(--time wall)
succeed "in the wall's time" 'iterations of' plan -o "$dir/w.csv"
steps=$(woken "$dir/w.csv")
if [ "$steps" -gt 50 ]; then ok "steps at markers in the wall's time"; else bad "steps at markers in the wall's time" "$steps steps"; fi
tightrope() { emulated --time virtual -- "$f" live --policy tightrope --set signal=iterations --rings "$dir/rings" --iteration iteration --for 5s -o "$dir/t.csv"; }
succeed "tightrope counts them" 'iterations of' tightrope
check "from the start" awk -F, '$1 == "step" { for (i = 1; i <= NF; i++) at[$i] = i }
  $1 == "0" && $3 == "0" { fresh = $at["fresh"]; exit !($at["iterations"] != "" && (fresh == "*" || fresh ~ /iterations/)) }' "$dir/t.csv"

# The emulator's own report stands on the same stream.
told() { emulated --time virtual -- "$f" live --policy plan --set plan="$dir/plan.csv" "${@:3}" 2>&1 | grep -q -- "$2" && ok "$1" || bad "$1" "does not say: $2"; }
told "a plan without rings" 'give --rings DIR and --iteration NAME'
told "a plan without names" 'give --rings DIR and --iteration NAME' --rings "$dir/r"
refuse "names without rings" 2 '--iteration needs --rings DIR' "$f" live --policy tightrope --iteration step
refuse "names without a trace" 2 '--iteration needs --kernels FILE' "$f" record -o "$dir/t.csv" --iteration step -- true
refuse "a name that is too long" 2 'of 1 to 95 bytes' "$f" live --policy tightrope --rings "$dir/r" --iteration "$(printf 'x%.0s' {1..96})"
refuse "an empty name" 2 'of 1 to 95 bytes' "$f" live --policy tightrope --rings "$dir/r" --iteration ''
mkdir -p "$dir/taken" && : >"$dir/taken/wake"
told "no FIFO" 'is no FIFO that can be opened' --rings "$dir/taken" --iteration step
finish
