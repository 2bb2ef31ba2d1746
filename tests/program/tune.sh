#!/usr/bin/env bash
# foldline tune on simulated boards, in virtual time: which clock it ends with for programs whose course is known, that
# the GPU is as before whatever happens, and the ways to set a clock without the right to.
#   tests/program/tune.sh build/foldline        3 programs; 30 with FL_NIGHTLY=1
. "$(dirname "$0")/shell.sh"
work=$root/tests/support/work.py sweep=$dir/programs.csv count=3 least=0.8
[ -z "${FL_NIGHTLY-}" ] || count=30 least=0.9
python3 "$work" make 30 11 "$sweep"
export FOLDLINE_STATE=$dir/state
# emulated NAME OPTION... -- COMMAND: the command beside the program NAME on a V100
emulated() {
  local name=$1
  shift
  "$f" emulate "$sweep" --workload "$name" --platform v100-300w --repeat 1000 --wall off --no-cpu --time virtual --quiet "$@"
}
tuned() { # NAME OPTION...: tunes it
  local name=$1
  shift
  emulated "$name" --privileged -o "$dir/session.json" -- "$f" tune "$@" -- python3 "$work" run "$sweep" "$name" 0.004
}

for ((i = 0; i < count; i++)); do
  tuned "p$i" -o "$dir/rows.csv" >"$dir/out" 2>"$dir/err" || echo "p$i: $(tail -1 "$dir/err")" >&2
  mhz=$(sed -nE 's/^([0-9]+) MHz.*/\1/p' "$dir/out" | tail -1)
  read -r over saved best < <(python3 "$work" judge "$sweep" "p$i" "${mhz:-135}" 0.05)
  echo "p$i $mhz $(cut -d, -f3 "$dir/rows.csv" | grep -E '^[0-9]+$' | sort -u | wc -l) $over $saved $best"
done | tee "$dir/all"
check "at most one program in thirty breaks the bound by more than half a point" \
  awk -v most=$((count / 30)) '$4 > 0.5 { n++ } END { exit n > most }' "$dir/all"
check "$least of what the best static clock saves" awk -v least=$least '{ s += $5; b += $6 } END { exit !(s >= least * b) }' "$dir/all"
check "at most five clocks" awk '$3 > 5 { bad = 1 } END { exit bad }' "$dir/all"
succeed "advise goes on from the rows" 'MHz' "$f" advise "$dir/rows.csv"

emulated p2 --privileged --kill-patterns -- "$f" tune --runs 1 -- sleep 1 >"$dir/out" 2>&1
check "killed at its sets and in the middle it leaves the GPU as it was" [ $? = 0 ]
held() { "$f" emulate "$sweep" --workload p2 --platform v100-300w --repeat 1000 --no-cpu --time virtual --quiet --privileged "$@"; }
succeed "a power limit" '^[0-9]+ W instead of 300: saves [0-9.]+ ' held -o "$dir/session.json" -- "$f" tune --caps --bound 10% -o "$dir/caps.csv" -- \
  python3 "$work" run "$sweep" p2 0.002
check "is put back" grep -q 'nvmlDeviceSetPowerManagementLimit' "$dir/session.json"
check "and stands in the rows" grep -qE '^python3,,,,[0-9]+,' "$dir/caps.csv"
held --kill-patterns -- "$f" tune --caps --runs 1 -- sleep 1 >"$dir/out" 2>&1
check "killed it leaves the limit as it was" [ $? = 0 ]
refuse "a command that sets no limit" 2 'has no \{watts\}' "$f" tune --caps --set-command 'nvidia-smi -lgc {mhz}' -- true
refuse "a command that takes no time" 3 "the command took no time" emulated p2 --privileged -- "$f" tune -- true
refuse "a command that fails" 3 'ended with status 1, expected 0' emulated p2 --privileged -o "$dir/session.json" -- "$f" tune -- false
check "and the clock is put back" grep -q 'nvmlDeviceResetGpuLockedClocks' "$dir/session.json"
succeed "another program sets the clock" '^set +nvidia-smi -i 0 -lgc' emulated p2 --privileged -o "$dir/session.json" -- "$f" tune --runs 1 \
  --set-command "python3 '$work' lock {mhz}" --undo-command "python3 '$work' lock 0" -- python3 "$work" run "$sweep" p2 0
succeed "as JSON" '"sm_mhz":.*1[0-9]{3}' emulated p2 --privileged -- "$f" tune --json --runs 1 -- python3 "$work" run "$sweep" p2 0
check "and undoes it" grep -q 'nvmlDeviceResetGpuLockedClocks' "$dir/session.json"
succeed "joules that differ from run to run" 'energies of runs at one clock differ by [0-9.]+ %' emulated p2 --privileged -- sh -c '"$0" tune -- sleep 0.01 2>&1' "$f"
emulated p2 -- "$f" tune --runs 1 --set-command 'true {mhz}' -- python3 "$work" run "$sweep" p2 0 >"$dir/out" 2>"$dir/err"
check "a command that sets nothing is found out" [ "$? $(grep -cE 'the GPU ran at 1530 MHz, expected 10[0-9]+ MHz: nothing has set' "$dir/err")" = "3 1" ]
refuse "who sets by hand ends the input" 3 'nobody pressed Enter' emulated p2 -- "$f" tune --manual -- sleep 1
refuse "no command" 2 'expected a command to run' "$f" tune
refuse "a command that sets no clock" 2 'has no \{mhz\}' "$f" tune --set-command 'nvidia-smi -lgc' -- true
refuse "two ways" 2 'expected one of them' "$f" tune --manual --set-command 'x {mhz}' -- true
refuse "an undo for nothing" 2 'no effect without --set-command' "$f" tune --undo-command x -- true
finish
