#!/usr/bin/env bash
# The jobs of harness/emulate/CI.md, as they stand there: each program and each line of a step.
. "$(dirname "$0")/shell.sh"

page=$root/harness/emulate/CI.md
mkdir "$dir/bin" "$dir/job"
ln -s "$f" "$dir/bin/foldline"
export PATH=$dir/bin:$PATH
# A block of the page: of this language, the one that holds this text.
block() { awk -v kind="\`\`\`$1" -v text="$2" '
  $0 == kind { inside = 1; body = ""; next }
  inside && $0 == "```" { inside = 0; if (index(body, text)) { printf "%s", body; exit } next }
  inside { body = body $0 "\n" }' "$page"; }
# The lines of a job's step, without their indent.
step() { block yaml "$1:" | awk -v name="- name: $2" '
  index($0, "- name: ") { inside = index($0, name) > 0; next }
  inside && !/run: \|/ { sub(/^        /, ""); print }'; }

block c 'int main' >"$dir/job/cap.c"
block python 'import ctypes' >"$dir/job/cap.py"
block go 'package main' >"$dir/job/cap.go"
cd "$dir/job" || exit 1
job() { # NAME STEP
  step "$1" "$2" >steps
  check "$1: $2 has lines" test -s steps
  while IFS= read -r line; do
    check "$1: $line" bash -c "$line"
  done <steps
}
job c build
job c test
check "half a minute passed: its report" awk -F'[:,]' '/"time_s"/ { exit !($2 >= 30 && $2 < 31) }' c.json
job python test
if command -v go >/dev/null && [ "$(go env CGO_ENABLED)" = 1 ]; then
  export GOCACHE=$dir/gocache GOPATH=$dir/gopath GO111MODULE=off GOFLAGS=
  job go build
  job go test
  check "half a minute passed here too" awk -F'[:,]' '/"time_s"/ { exit !($2 >= 30 && $2 < 31) }' go.json
else
  echo "skipped: go is not here (package golang-go), so the Go job is not run"
fi
cd "$root" || exit 1

finish
