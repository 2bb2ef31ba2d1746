#!/usr/bin/env bash
# foldline live --server: a policy for servers at the controls of a simulated GPU, led by an engine's page that a stand-in
# serves (tests/support/page_server.py). A page that lies, hangs or is gone leaves the default clock until it is back.
. "$(dirname "$0")/shell.sh"

export FOLDLINE_STATE=$dir/state FOLDLINE_RUN=$dir/run
"$f" synth -o "$dir/w.csv" --kernels 20000 --mean-us 5000 --seed 3 >/dev/null || exit 1
mode() { echo "$1" >"$dir/mode.new" && mv "$dir/mode.new" "$dir/mode"; }
serve() {
  rm -f "$dir/port"
  python3 tests/support/page_server.py "$dir" &
  page=$!
  for _ in $(seq 200); do [ -s "$dir/port" ] && break; sleep 0.05; done
  url=http://127.0.0.1:$(cat "$dir/port")/metrics
}
trap 'kill $page 2>/dev/null; rm -rf "$dir"' EXIT

# ---- what needs no page ----
refuse "a policy for servers wants one" 2 "policy ecofreq reads the signals of a server .*--server URL" \
  "$f" live --policy ecofreq
refuse "targets want a server" 2 "expected --server URL as well" "$f" live --policy tightrope --ttft 1s
refuse "only http" 2 "expected http://HOST:PORT/PATH" "$f" live --policy ecofreq --server https://x/metrics
refuse "a port" 2 "a port from 1 to 65535" "$f" live --policy ecofreq --server http://127.0.0.1:99999/
refuse "a time" 2 "'soon'" "$f" live --policy ecofreq --server http://127.0.0.1:1/ --tbt soon

emulated=("$f" emulate "$dir/w.csv" --platform rtx4070-laptop --quiet --privileged --time wall --rings "$dir/rings" --
  "$f" live --control)
mode ok
serve
targets=(--ttft 1s --tbt 100ms)
refuse "nobody there" 3 "server http://127.0.0.1:1/: it cannot be reached: Connection refused" \
  "${emulated[@]}" --policy ecofreq --server http://127.0.0.1:1/ "${targets[@]}" --for 1s
"${emulated[@]}" --policy ecofreq --server "$url" --for 1s >"$dir/out" 2>"$dir/err"
check "a policy without its targets is refused" test $? = 2
check "with what it needs" grep -q "policy ecofreq: needs a TTFT and a TBT target" "$dir/err"

for policy in slo-pid biscale-decode; do
  refuse "$policy without a server" 2 "policy $policy reads the signals of a server .*--server URL" "$f" live --policy $policy
  "${emulated[@]}" --policy $policy --server "$url" --for 1s >"$dir/out" 2>"$dir/err"
  check "$policy without a target is refused" test $? = 2
  check "$policy says what it needs" grep -q "policy $policy: needs a TBT target of every server" "$dir/err"
  succeed "$policy runs live" '' "${emulated[@]}" --policy $policy --server "$url" "${targets[@]}" --for 2s -o "$dir/$policy.csv"
  check "$policy sets clocks there" eval "awk -F, '!/^#/ && !head { for (i = 1; i <= NF; i++) if (\$i == \"set_sm_mhz\") c = i; head = 1; next }
    \$c != \"\" { n++ } END { exit !n }' '$dir/$policy.csv'"
done

# ---- pages that are none ----
none() { # MODE PATTERN
  mode "$1"
  refuse "a page that is none: $1" 3 "$2" "${emulated[@]}" --policy ecofreq --server "$url" "${targets[@]}" --for 1s
}
none hang "its page does not come in two seconds"
none drip "its page does not come in two seconds"
none close "its answer is no HTTP|it hangs up"
none wrong "its answer is not 200 OK"
none big "its page is larger than 4 MiB|does not come in two seconds"
none none "its page has no metric of vLLM's names"

# ---- a run that goes through all of it ----
mode ok
"${emulated[@]}" --policy ecofreq --server "$url" "${targets[@]}" -o "$dir/log.csv" --json >"$dir/result" 2>"$dir/said" &
run=$!
comes() { # NAME PATTERN: the line is said
  for _ in $(seq 600); do
    grep -qE "$2" "$dir/said" && { ok "$1"; return; }
    kill -0 $run 2>/dev/null || break
    sleep 0.05
  done
  bad "$1" "$(cat "$dir/said")"
}
clocks() { # the clocks set so far, one after the other
  awk -F, '!/^#/ && !head { for (i = 1; i <= NF; i++) if ($i == "set_sm_mhz") c = i; head = 1; next }
           $3 == 0 && $c != "" { print $c }' "$dir/log.csv"
}
sets() { # NAME PATTERN: the last clock set comes to match
  for _ in $(seq 600); do
    clocks | tail -1 | grep -qE "$2" && { ok "$1"; return; }
    kill -0 $run 2>/dev/null || break
    sleep 0.05
  done
  bad "$1" "$(clocks | tail -3) $(cat "$dir/said")"
}
comes "what the page lacks is told" "the server's page does not have .*oldest_wait_ns"
sets "steps of 10 ms of 100 allowed: the lowest clock of six" '^[0-9]+$'
top=$(clocks | head -1)
for _ in $(seq 100); do [ "$(clocks | tail -1)" -lt "$top" ] 2>/dev/null && break; sleep 0.1; done
check "which is below the top" test "$(clocks | tail -1)" -lt "$top"
mode hang
comes "a page that hangs is told" "no page for .* s .*unknown until it is back"
sets "then the default clock holds" '^default$'
mode ok
comes "it is back" "its page is back after"
sets "and so is the policy" '^[0-9]+$'
mode nan
comes "a value that is no number is told" "vllm:num_requests_waiting on its page cannot be"
sets "and leaves the default clock" '^default$'
mode ok
sets "until it is one" '^[0-9]+$'
mode reset
comes "an engine that begins anew is told" "its counters fell"
kill $page
comes "a server that is gone is told" "no page for .*Connection refused"
sets "and leaves the default clock " '^default$'
kill -TERM "$(pgrep -P $run | head -1)"
wait $run
check "it ends in order" test $? = 0
check "counts of it" grep -qE '"lost":\s*[2-9]' "$dir/result"
check "nothing stays locked" test -z "$(ls "$dir"/state/*.record 2>/dev/null)"
succeed "the log replays, with what the page said" ' 0 differ' "$f" verify "$dir/log.csv"
check "it names the server's targets" grep -qE '^# server0.targets: 1000000000/100000000/' "$dir/log.csv"

# ---- the names of older releases, and the other policies ----
mode old
serve
for policy in throttllem agft; do
  succeed "$policy, led by a page of older names" 'pages of the server, 0 failed' \
    "${emulated[@]}" --policy $policy --server "$url" "${targets[@]}" --for 4s -o "$dir/$policy.csv" --rings "$dir/rings"
  succeed "$policy replays" ' 0 differ' "$f" verify "$dir/$policy.csv"
done

finish
