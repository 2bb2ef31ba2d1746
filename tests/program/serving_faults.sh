#!/usr/bin/env bash
# What servers tell of themselves fails on purpose, and policies fall back to the default clock.
. "$(dirname "$0")/shell.sh"

cat >"$dir/s.csv" <<'END'
# foldline-serving 1
# max_seqs: 16
# token_budget: 512
# block_tokens: 16
# kv_blocks: 1000
what,at,kv,value
host_s,,,0.001
token,,,0.0002
weights_s,,,0.01
kv_s,,,0.00000013
sharpness,,,4
ref_sm_mhz,,,1410
clock,,,1410
END
awk 'BEGIN { print "# foldline-requests 1\nt_ns,prompt_tokens,output_tokens"
  for (i = 0; i < 60; i++) printf "%.0f,%d,%d\n", i * 1e9, 50 + i * 37 % 300, 20 + i * 13 % 60 }' >"$dir/r.csv"
serve=(run "$dir/s.csv" "$dir/r.csv" --platform a100 --ttft 2s --tbt 200ms)
saving() { "$f" "${serve[@]}" --json "$@" | sed -n 's/^.*"energy_saving_pct":[[:space:]]*\([^,]*\).*/\1/p' | head -n 1; }

whole=$(saving --policy ecofreq)
check "without a fault ecofreq saves" awk -v a="$whole" 'BEGIN { exit !(a > 1) }'
check "who is never told what runs keeps the default clock" [ "$(saving --policy ecofreq --fault drop:signal=running)" = 0 ]
for fault in drop freeze; do
  half=$(saving --policy ecofreq --fault "$fault:server=0,signal=running,from_s=30")
  check "$fault from the middle on: the first half's saving is left" awk -v a="$half" -v b="$whole" 'BEGIN { exit !(a > 0 && a < 0.8 * b) }'
done
check "a signal that comes back is used again" awk -v a="$(saving --policy ecofreq --fault drop:signal=running,from_s=30,for_s=3)" -v b="$whole" \
  'BEGIN { exit !(a > 0.8 * b && a != b) }'
refuse "a server that there is not" 2 'server 1, but the node has 1' "$f" "${serve[@]}" --policy ecofreq --fault drop:server=1
refuse "a server where nothing is served" 2 'of a server, and the node has none' "$f" run "$root/traces/samples/mix8.csv" --platform generic \
  --policy assure --fault drop:signal=waiting
finish
