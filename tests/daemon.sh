#!/usr/bin/env bash
# Does Assure decide as the GEEPAFS daemon, to the bit? A client that is a second daemon (support/clients/daemon.c)
# drives eight simulated GPUs in virtual time, in closed loop, and each of its logs replays without one difference.
#   daemon.sh BUILD    FL_DAEMON_LOGS=120: that many logs, three for each seed, instead of 12
# Prints the decisions, the differences and how many fits of each kind there were; each kind must occur. "ends": lines
# that cross exactly at a probe clock.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 logs=${FL_DAEMON_LOGS:-12} loops=800 gpus=8
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-daemon-XXXXXX")
trap 'rm -rf "$work"' EXIT
foldline=$build/foldline
platforms=(v100-163w v100-300w) machines=(v100-maxq v100)

# Kernels of a few lengths, from a GPU that never waits to one that mostly does; bound by the core or by memory; as long
# as the daemon runs, or half as long, so that the node falls idle.
means=(2000 6000 20000) gaps=(2 30 200 4000) memories=(0.1 0.3 0.5 0.7 0.9) kinds=(3 8 2 32)
draw_workload() { # seed, platform
  local mean=${means[$1 % 3]} gap count
  gap=$((mean * gaps[$1 % 4] / 100))
  count=$((loops * 200000 * gpus / (mean + gap)))
  [ $(($1 % 5)) != 4 ] || count=$((count / 2))
  "$foldline" synth -o "$work/w.csv" --platform "$2" --gpus $gpus --kernels $((count < 200000 ? count : 200000)) \
    --mean-us "$mean" --gap-us "$gap" --memory "${memories[$1 % 5]}" --kinds "${kinds[$1 / 3 % 4]}" \
    --burst $((1 + $1 % 7 * 3)) --seed "$1" >/dev/null
}

count=0 decisions=0 differ=0
for ((seed = 1; count < logs; seed++)); do
  which=$((seed / 4 % 2))
  platform=${platforms[which]}
  draw_workload "$seed" "$platform"
  for theta in 0.85 0.9 0.95; do
    [ "$count" -lt "$logs" ] || break
    "$foldline" emulate "$work/w.csv" --platform "$platform" --gpus $gpus --seed "$seed" --time virtual --quiet -- \
      "$build/clients/daemon" "${machines[which]}" $theta $loops >"$work/log" 2>"$work/fits" ||
      { cat "$work/fits"; exit 1; }
    cat "$work/fits" >>"$work/all"
    result=$("$foldline" verify "$work/log" --format geepafs --platform "$platform" --policy assure --set theta=$theta \
      --json) || true # 1 where one differs
    [[ $result =~ \"decisions\":([0-9]+),\"differ\":([0-9]+),.*\"torn_line\":null ]] ||
      { echo "seed $seed, theta $theta: $result"; exit 1; }
    count=$((count + 1)) decisions=$((decisions + BASH_REMATCH[1])) differ=$((differ + BASH_REMATCH[2]))
    [ "${BASH_REMATCH[2]}" = 0 ] || echo "seed $seed, theta $theta: $result"
  done
done

awk '{ for (i = 1; i < NF; i += 2) { sum[$i] += $(i + 1); name[i] = $i } n = NF }
  END { for (i = 1; i < n; i += 2) printf "%s%s %d", (i > 1 ? ", " : ""), name[i], sum[name[i]] }' \
  "$work/all" >"$work/sums"
echo "$count logs: $decisions decisions, $differ differ; fits: $(cat "$work/sums")"
for kind in line fold fixed none void ends; do
  grep -qE "\b$kind [1-9]" "$work/sums" || { echo "no fit of the kind $kind"; exit 1; }
done
[ "$differ" = 0 ] && [ "$decisions" = $((logs * loops * gpus)) ]
