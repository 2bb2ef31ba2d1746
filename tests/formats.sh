#!/usr/bin/env bash
# The file formats of 1.0 (harness/manual/formats). Every sample, gzipped or not, holds by the pages; files that 1.0
# wrote are read as they were then; the program and a checker written from the pages alone refuse the same changed copies.
#   tests/formats.sh BUILD    FL_FORMATS=2000: so many changed copies of each file (nightly)
set -eu
cd "$(dirname "$0")/.."
exec python3 -B tests/support/formats_agree.py "$1/tests/read_formats" "${FL_FORMATS:-40}"
