#!/usr/bin/env bash
# Do the tests notice what is wrong? Changes one token of a source at a time, in a copy, and expects a suite to fail.
#   tests/mutate.sh                                  a sample of 100 mutants of each room
#   tests/mutate.sh --room policies --sample 300 --seed 2
#   tests/mutate.sh --file policies/compared/depo.c --match section_above
#   tests/mutate.sh --all                            every mutant
# tests/mutate.sh --help says the rest. Needs a compiler, cmake, CUnit and what the program needs.
cd "$(dirname "$0")/.." || exit 1
unset FL_BLESS
exec python3 tests/mutate.py "$@"
