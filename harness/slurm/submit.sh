#!/usr/bin/env bash
# Runs a grid as a Slurm job array and merges it when all of it is done; a merge waits for success of every task.
#   harness/slurm/submit.sh EXPERIMENT.json RESULTS.csv TASKS [sbatch options...]
# FOLDLINE: the program (found on the PATH); it, the experiment and the results must be seen by every node. Prints the ids
# of both jobs.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
experiment=$(realpath "$1")
results=$(realpath -m "$2")
tasks=$3
shift 3
case $tasks in '' | *[!0-9]* | 0) echo "submit: '$tasks', expected a number of tasks" >&2; exit 2 ;; esac
program=$(realpath "$(command -v "${FOLDLINE:-foldline}")") || { echo "submit: no foldline; set FOLDLINE" >&2; exit 2; }
array=$(sbatch --parsable --array="1-$tasks" --output="$results.slurm-%a.log" \
  --export="ALL,FOLDLINE=$program,EXPERIMENT=$experiment,RESULTS=$results" "$@" "$here/grid.sbatch")
merge=$(sbatch --parsable --dependency="afterok:$array" --job-name=foldline-merge --output="$results.merge.log" \
  --wrap="'$program' grid --merge '$results'.shard-*-of-$tasks -o '$results'")
echo "$array $merge"
