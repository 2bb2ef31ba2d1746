#!/usr/bin/env bash
# Does the README still say what the program says? The table of policies must be the program's own.
#   tests/readme.sh FOLDLINE
set -eu
cd "$(dirname "$0")/.."
"${1:?usage: tests/readme.sh FOLDLINE}" policies --table | while IFS= read -r line; do
  grep -qxF -- "$line" README.md || { echo "README.md lacks: $line"; exit 1; }
done
echo "README.md lists the policies as the program does"
