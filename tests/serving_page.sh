#!/usr/bin/env bash
# Makes the table of policies for servers anew, in harness/experiments/serving.md (half a minute of
# processor time). What the pages say beside it is theirs to keep true.
#   tests/serving_page.sh FOLDLINE
set -eu
program=$(realpath "${1:?usage: tests/serving_page.sh FOLDLINE}")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" compare harness/experiments/serving.json -o "$work/result.csv" >/dev/null
python3 tests/support/serving_page.py "$work/result.csv" harness/experiments/serving.md
echo "written: harness/experiments/serving.md"
