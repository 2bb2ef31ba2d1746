#!/usr/bin/env bash
# Fail where a table of policies in policies/README.md or harness/manual/live.md is not the program's own.
#   tests/readme.sh FOLDLINE
# FL_BLESS=1 writes the program's tables into it.
set -eu
cd "$(dirname "$0")/.."
program=${1:?usage: tests/readme.sh FOLDLINE}
# Each table by its page, the option that prints it and the beginning of its first line.
while IFS='=' read -r page option first; do
  if [ "${FL_BLESS:-}" = 1 ]; then
    table=$("$program" list policies "$option")
    blessed=$(FIRST="$first" TABLE="$table" awk '
      index($0, ENVIRON["FIRST"]) == 1 { print ENVIRON["TABLE"]; inside = 1 }
      !/^\|/ { inside = 0 }
      !inside' "$page")
    printf '%s\n' "$blessed" >"$page"
  fi
  "$program" list policies "$option" | while IFS= read -r line; do
    grep -qxF -- "$line" "$page" || { echo "$page lacks: $line"; exit 1; }
  done
done <<'EOT'
policies/README.md=--table=| policy | what it does |
harness/manual/live.md=--vendors=| policy | live on
EOT
echo "The pages list the policies as the program does"
