#!/usr/bin/env bash
# The keys of experiments: page, JSON Schema and reader are one table. Run by Debian's Python, which has jsonschema.
. "$(dirname "$0")/shell.sh"
schema=harness/experiment.schema.json

succeed "the page" '^  bound +text or number from 0 to 1; default: none' "$f" help experiment
succeed "the page of what is inside" '^selection: ' "$f" help experiment
"$f" help experiment --schema >"$dir/schema.json"
[ "${FL_BLESS:-}" = 1 ] && cp "$dir/schema.json" $schema
check "the schema that is installed is the program's (FL_BLESS=1 writes it)" cmp "$dir/schema.json" $schema
check "experiments, and wrong ones, by schema and reader" /usr/bin/python3 tests/support/experiment_schema.py "$f" $schema \
  harness/experiments/*.json tests/gate/gate.json

succeed "help lists the commands" '^  compare +policies' "$f" help
check "help is --help" cmp <("$f" help) <("$f" --help)
check "help COMMAND is COMMAND --help" cmp <("$f" help compare) <("$f" compare --help)
check "help COMMAND all is COMMAND --help all" cmp <("$f" help compare all) <("$f" compare --help all)
check "help of a part" cmp <("$f" help fit device) <("$f" fit device --help)
check "help of help" cmp <("$f" help help) <("$f" help --help)
refuse "an unknown topic" 2 "^foldline help: no topic 'experimnt', did you mean 'experiment'\?$" "$f" help experimnt
refuse "a misspelt command" 2 "^foldline help: no topic 'comparr', did you mean 'compare'\?$" "$f" help comparr
refuse "a topic like none" 2 "^foldline help: no topic 'qqqqqqq', expected one of run, compare, grid" "$f" help qqqqqqq
refuse "a misspelt command, run" 2 "^foldline: no command 'comparr', did you mean 'compare'\?$" "$f" comparr
refuse "a schema of a command" 2 'exists only for experiments' "$f" help compare --schema
refuse "two topics" 2 "'compare' after experiment" "$f" help experiment compare
finish
