#!/usr/bin/env bash
# Do the tests guard every rule of GEEPAFS and SweetSpot, and the rules of models/ and sim/ that mutations.txt lists?
# Breaks one rule at a time in a copy, and expects a test to fail: for policies/ any of $tests, for a file named from the
# root the suite named beside it. Ends with 1 where a mutant lives, or where a mutation no longer changes its file. Needs a
# compiler, CUnit, GSL and libcsv, no build folder. MUTATE_JOBS: how many at a time. MUTATE_ONLY=TEXT: only the lines of
# mutations.txt that this regular expression matches.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
root=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-mutate-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset FL_BLESS
fail() { echo "mutate: $*"; exit 1; }

cc=${CC:-cc}
flags="-std=gnu17 -O0 -w -ffp-contract=off -fPIC -D_GNU_SOURCE"
tests="test_assure test_foldfit test_policies"
common="traces/diag.c traces/numbers.c sim/params.c sim/rows.c sim/instance.c harness/input/plugin.c"
grep -e "${MUTATE_ONLY:-}" tests/mutations.txt >"$work/mutations" || fail "nothing matches ${MUTATE_ONLY-}"
# What this CPU cannot run no test can kill.
if ! grep -q '^flags.* avx512dq .*avx512vl' /proc/cpuinfo; then
  echo "mutate: skipped, as this CPU has no AVX-512: $(grep -cE ' [|] sim/([a-z_]*avx512|streams_lanes)' "$work/mutations") mutants"
  grep -vE ' [|] sim/([a-z_]*avx512|streams_lanes)' "$work/mutations" >"$work/kept"
  mv "$work/kept" "$work/mutations"
fi
suites=$(sed -n 's/^[^#|]* | [a-z/]*\/[a-z_]*\.c \(test_[a-z_]*\) | .*/\1/p' "$work/mutations" | sort -u)
libraries="-lgsl -lgslcblas -lcsv -lyajl -lsqlite3 -lz -lcjson -lcunit -lm -lpthread"
export root work cc flags tests libraries

# What no mutation touches is compiled once: the tests, the instance, and the policies as they are.
$cc $flags -I. -shared -fvisibility=hidden -DPOLICY_PLUGIN policies/skeleton.c -o "$work/skeleton.so" -lm || fail "skeleton.so"
mkdir -p "$work/good" "$work/out" "$work/rooms" "$work/made/harness/study" || fail "no folder"
echo '#define FL_ARCHIVE_HASH ""' >"$work/made/harness/study/archive_hash.h" # the build's is the archive's
for source in $common policies/*.c; do
  echo "$source $work/good/$(basename "$source" .c).o"
done >"$work/list"
for test in $tests; do
  echo "tests/$test.c $work/$test.o"
done >>"$work/list"
for suite in $suites; do
  echo "tests/$suite.c $work/$suite.o"
done >>"$work/list"
for source in models/*.c traces/*.c sim/*.c policies/*.c harness/base/*.c harness/chip/*.c harness/input/*.c harness/log/*.c harness/study/*.c \
  harness/fit/fit_decide.c harness/fit/fit_score.c harness/advise/advise.c harness/advise/advise_files.c \
  harness/advise/advise_kernels.c harness/advise/advise_log.c \
  harness/advise/advise_set.c; do
  echo "$source $work/rooms/$(tr / - <<<"${source%.c}").o"
done >>"$work/list"
xargs -P "${MUTATE_JOBS:-$(nproc)}" -L 1 sh -c '$cc $flags -I. -I"$work/made" -DFL_VERSION="\"\"" -DFL_ROOT="\"$root\"" -DFL_SHARE_DIR="\"$root/models\"" -DFL_PLOTS_DIR="\"\"" -DFL_CLIENT_DIR="\"\"" \
  -DFL_POLICY_ARCHIVE="\"$work/libfl_policies.a\"" -DFL_SKELETON_SO="\"$work/skeleton.so\"" -c "$0" -o "$1"' \
  <"$work/list" || fail "the sources do not compile"
(cd "$work/good" && ar rcs "$work/libfl_policies.a" $(cd "$root/policies" && ls *.c | sed 's/c$/o/')) || fail "archive"
ar rcs "$work/librooms.a" "$work"/rooms/*.o || fail "archive of rooms"

# Builds and runs the tests over the objects of a folder; prints the first that fails.
first_failure() { # folder of objects
  local test
  for test in $tests; do
    $cc "$work/$test.o" "$1"/*.o "$work/librooms.a" $libraries -ldl -o "$1/$test" || { echo "(does not link)"; return; }
    (ulimit -t 60 && TMPDIR=$1 exec timeout 900 "$1/$test") >"$1/$test.log" 2>&1 || { echo "$test"; return; }
  done
}

suite_kills() { # suite, folder, further objects, which take the place of those in the archive; 0: the suite fails
  local suite=$1 folder=$2
  shift 2
  $cc "$work/$suite.o" "$@" "$work/librooms.a" $libraries -o "$folder/$suite" || return 2
  ! (ulimit -t 60 && TMPDIR=$folder exec timeout 900 "$folder/$suite") >"$folder/$suite.log" 2>&1
}

room_mutant() { # number, rule, file and suite, expression
  local folder=$work/m$1 file=${3% *} suite=${3#* } killer
  mkdir -p "$folder"
  if ! sed "$4" "$file" >"$folder/mutant.c" || cmp -s "$file" "$folder/mutant.c"; then
    killer="NO LONGER APPLIES"
  elif ! $cc $flags -I. -c "$folder/mutant.c" -o "$folder/mutant.o" 2>"$folder/log"; then
    killer="DOES NOT COMPILE"
  else
    suite_kills "$suite" "$folder" "$folder/mutant.o" 2>"$folder/log"
    case $? in 0) killer=$suite ;; 1) killer=SURVIVES ;; *) killer="(does not link)" ;; esac
  fi
  printf '%-62s %s\n' "$2" "$killer" >"$work/out/$(printf %04d "$1")"
  rm -rf "$folder"
}

mutant() { # number, rule, file, expression
  case $3 in *' '*) room_mutant "$@"; return ;; esac
  local folder=$work/m$1 objects=$work/m$1/o file killer
  mkdir -p "$folder/policies" "$objects"
  cp "$root"/policies/*.[ch] "$folder/policies"
  if ! sed -i "$4" "$folder/policies/$3" || cmp -s "$root/policies/$3" "$folder/policies/$3"; then
    killer="NO LONGER APPLIES"
  else
    cp "$work"/good/*.o "$objects"
    killer=
    for file in "$folder"/policies/*.c; do # the mutated file, or those that include the mutated header
      case $3 in
      *.h) grep -q "policies/$3\"" "$file" || continue ;;
      *) [ "$file" = "$folder/policies/$3" ] || continue ;;
      esac
      $cc $flags -I"$folder" -I"$root" -c "$file" -o "$objects/$(basename "$file" .c).o" 2>"$folder/log" ||
        killer="DOES NOT COMPILE"
    done
    [ -n "$killer" ] || killer=$(first_failure "$objects")
  fi
  printf '%-62s %s\n' "$2" "${killer:-SURVIVES}" >"$work/out/$(printf %04d "$1")"
  rm -rf "$folder"
}
export -f first_failure suite_kills room_mutant mutant

killer=$(first_failure "$work/good")
[ -z "$killer" ] || fail "$killer fails without any mutation: $(cat "$work/good/$killer.log")"
rm -f "$work"/good/test_*
for suite in $suites; do
  suite_kills "$suite" "$work/good"
  [ $? = 1 ] || fail "$suite fails without any mutation: $(cat "$work/good/$suite.log")"
done
rm -f "$work"/good/test_*

number=0
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  rule=${line%% | *}
  rest=${line#* | }
  number=$((number + 1))
  printf '%s\0%s\0%s\0%s\0' "$number" "$rule" "${rest%% | *}" "${rest#* | }"
done <"$work/mutations" >"$work/jobs"
xargs -0 -n 4 -P "${MUTATE_JOBS:-$(nproc)}" bash -c 'mutant "$@"' mutant <"$work/jobs"

printf '%-62s %s\n' rule 'killed by'
cat "$work"/out/*
count=$(cat "$work"/out/* | wc -l)
expected=$(grep -cv -e '^#' -e '^$' "$work/mutations")
lived=$(cat "$work"/out/* | grep -cE '(SURVIVES|NO LONGER APPLIES|DOES NOT COMPILE|does not link)')
echo "mutate: $count of $expected mutants tried, $lived not killed"
[ "$lived" = 0 ] && [ "$count" = "$expected" ]
