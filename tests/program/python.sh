#!/usr/bin/env bash
# harness/python/foldline.py, with Debian's pandas: as it stands in the tree, and as it is installed.
. "$(dirname "$0")/shell.sh"
cd "$dir" || exit 1
export PYTHONDONTWRITEBYTECODE=1
FOLDLINE="$f" /usr/bin/python3 -W error::DeprecationWarning "$root/tests/support/python_module.py" "$root/harness/python" "$f" "$root/traces/samples" >log 2>&1 &&
  ok "$(tail -n 1 log) with FOLDLINE" || bad "the module" "$(tail -n 3 log)"
# Found without being told: on PATH; and beside itself in an installed tree.
mkdir path && ln -s "$f" path/foldline && mkdir -p alone && cp "$root/harness/python/foldline.py" alone
check "on PATH" env -u FOLDLINE PATH="$dir/path:$PATH" PYTHONPATH="$dir/alone" /usr/bin/python3 -c \
  "import foldline, sys; sys.exit(foldline.program() != '$f')"
mkdir -p tree/bin tree/share/foldline/python && cp "$root/harness/python/foldline.py" tree/share/foldline/python &&
  ln -s "$f" tree/bin/foldline
check "beside itself, installed" env -u FOLDLINE PATH=/usr/bin:/bin PYTHONPATH="$dir/tree/share/foldline/python" /usr/bin/python3 -c \
  "import foldline, sys; sys.exit(foldline.program() != '$f')"
check "nowhere" env -u FOLDLINE PATH=/usr/bin:/bin PYTHONPATH="$dir/alone" /usr/bin/python3 -c "
import foldline
try: foldline.program()
except FileNotFoundError as e: assert 'set FOLDLINE' in str(e)
else: raise SystemExit(1)"
check "the example of the page" grep -qF 'foldline.plot("pareto", rows)' "$root/harness/manual/compare.md"
# The how-to, literally, in a copy of the folders that it names.
mkdir page && cp -r "$root/traces" "$root/models" page
awk '/^## Use it from Python/ { on = 1 } on && /^```$/ { exit } code { print } on && /^```python/ { code = 1 }' "$root/harness/manual/compare.md" >page/how.py
check "the how-to has code" test -s page/how.py
[ -z "${FL_NIGHTLY:-}" ] || check "the how-to runs" env FOLDLINE="$f" PYTHONPATH="$root/harness/python" sh -c 'cd page && mkdir -p results && /usr/bin/python3 how.py'
[ -z "${FL_NIGHTLY:-}" ] || check "and draws" test -s page/results/pareto.png
finish
