#!/usr/bin/env bash
# Requests to servers of language models as a user meets them: drawn, imported, shown, and files that are wrong.
. "$(dirname "$0")/shell.sh"
export COLUMNS=300

sample=traces/samples/azure/conversation.requests.csv
succeed "the sample is a request trace" '2867 over 600.0 s, from foldline-requests: 1147 prompt and 260 output tokens' "$f" import "$sample"
check "the sample's credit stands in it" grep -q 'CC-BY-4.0' "$sample"
succeed "it is shown as a table" 't_ns  prompt_tokens  output_tokens' "$f" show "$sample" --rows 3
succeed "with what the file says of itself" 'Splitwise' "$f" show "$sample" --rows 1 --head

# Azure's own files: dates become nanoseconds from the first, what has no tokens is left out and told.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51,879,0\n' >"$dir/azure.csv"
succeed "Azure's trace is imported" '1 of 3 rows without a value: left out; the first is line 4: the request has no prompt or output tokens' "$f" import "$dir/azure.csv" -o "$dir/canonical.csv"
check "its rows" cmp <(grep -v '^#' "$dir/canonical.csv") <(printf 't_ns,prompt_tokens,output_tokens\n0,374,44\n4314579000,396,109\n')
succeed "its source is kept" 'source: azure.csv, imported as azure-llm' grep '^# source' "$dir/canonical.csv"
succeed "an import may be asked for by name, as JSON" '"prompt_tokens":[[:space:]]*770' "$f" import "$dir/azure.csv" --format azure-llm --json
gzip -k "$dir/canonical.csv"
succeed "gzipped" 'requests  *2 over 4.3 s' "$f" import "$dir/canonical.csv.gz"
succeed "through a pipe" 'requests  *2 over 4.3 s' bash -c "'$f' import - <'$dir/canonical.csv'"

# The times of a measured run are further columns.
printf 't_ns,prompt_tokens,output_tokens,queued_ns,scheduled_ns,first_token_ns,last_token_ns\n0,9,2,5,6,7,8\n3,9,1,,,9,9\n' >"$dir/measured.csv"
succeed "times of a measured run" 'requests  *2 over' "$f" import "$dir/measured.csv" -o "$dir/kept.csv"
check "they are kept" cmp <(grep -v '^#' "$dir/kept.csv") "$dir/measured.csv"

# Synthetic requests.
succeed "drawn" 'requests over' "$f" synth requests -o "$dir/a.csv" --rate 20 --seconds 60 --cv 2 --shared 100
"$f" synth requests -o "$dir/b.csv" --rate 20 --seconds 60 --cv 2 --shared 100 >/dev/null
check "the same for the same seed" cmp "$dir/a.csv" "$dir/b.csv"
"$f" synth requests -o "$dir/b.csv" --rate 20 --seconds 60 --cv 2 --shared 100 --seed 2 >/dev/null
check "another for another seed" test "$(cmp -s "$dir/a.csv" "$dir/b.csv"; echo $?)" = 1
succeed "drawn ones are requests like others" 'shared with earlier ones' "$f" import "$dir/a.csv"
"$f" synth requests -o "$dir/c.csv" --requests 50 >/dev/null
check "so many" test "$(grep -vc '^[#t]' "$dir/c.csv")" = 50
refuse "nothing to write" 2 'expected options and -o REQUESTS.csv only' "$f" synth requests --rate 2
refuse "a rate of none" 2 'rate' "$f" synth requests -o "$dir/d.csv" --rate 0
refuse "nobody comes" 2 'no request arrives within 0.001 s' "$f" synth requests -o "$dir/d.csv" --seconds 0.001
check "nothing is written then" test ! -e "$dir/d.csv"
refuse "more than 26 days" 2 'after more than 26 days' "$f" synth requests -o "$dir/d.csv" --rate 1e-6 --requests 9
refuse "an option of kernels" 2 "kernels" "$f" synth requests -o "$dir/d.csv" --kernels 9

printf '# foldline-requests 1\nt_ns,prompt_tokens,output_tokens\n5,9,9\n4,9,9\n6,0,9\n7,9,1\n' >"$dir/left.csv"
succeed "requests that failed are left out" 'left.csv: 1 of 4 rows without a value: left out; the first is line 5' "$f" import "$dir/left.csv"
check "and those out of order" grep -q 'left.csv: 1 of 4 rows that contradict' "$dir/out"

# wrong NAME MESSAGE ROWS: such rows below the header, refused at their place by --strict, with nothing written
wrong() {
  printf '# foldline-requests 1\nt_ns,prompt_tokens,output_tokens,cached_tokens\n%b' "$3" >"$dir/bad.csv"
  refuse "$1" 2 "bad.csv:$2" "$f" import --strict "$dir/bad.csv" -o "$dir/out.csv"
  check "nothing is written of it" test ! -e "$dir/out.csv"
}
wrong "out of order" '4:1: t_ns is 4 after 5, expected ascending times' '5,9,9,0\n4,9,9,0\n'
wrong "an empty prompt" "3:3: prompt_tokens is '0', expected a whole number from 1" '0,0,9,0\n'
wrong "no output" "3:5: output_tokens is '0', expected a whole number from 1" '0,9,0,0\n'
wrong "more cached than there is" "3:7: cached_tokens is '10', expected a whole number from 0 to 9" '0,9,1,10\n'
wrong "a row cut off" "3:3: row has 2 fields, expected 4" '0,9\n'
wrong "a last line cut off" "4:8: the last line may be cut off" '0,9,44,0\n0,9,4,0'
wrong "no row" " no requests, expected at least one row" ''
refuse "no kernel trace" 2 'conversation.requests.csv:1: has requests, which a server answers, expected a server' "$f" run "$sample" --platform generic --policy nvboost
succeed "they are shown" 'prompt_tokens' "$f" show "$sample"
refuse "requests beside kernels" 2 'requests and other files' "$f" import traces/samples/mix8.csv "$sample"
refuse "over itself" 2 'kept.csv'  "$f" import "$dir/kept.csv" -o "$dir/kept.csv"
finish
