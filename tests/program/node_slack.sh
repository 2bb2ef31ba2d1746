#!/usr/bin/env bash
# Two GPUs that meet at a barrier after every iteration: under tightrope the one that waits goes slower than any clock that
# both keep, and the program holds its bound.
#   tests/program/node_slack.sh build/foldline
. "$(dirname "$0")/shell.sh"

# 1,500 iterations of ten kernels; GPU 0 takes 28 ms for them, GPU 1 takes 20 ms and waits.
awk 'BEGIN {
  print "# foldline-kernels 1"; print "# sm_mhz: 1500"; print "# mem_mhz: 1000"; print "# source: drawn for a test"
  print "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z,waits_for"
  for (i = 0; i < 1500; i++)
    for (g = 0; g < 2; g++) {
      t = i * 28000000
      for (k = 0; k < 10; k++) {
        end = t + (g ? 1500000 : 2100000) + (k % 3 - 1) * 500000 + (k == 9 ? g ? 5500000 : 7500000 : 0)
        printf "%d,%d,0,%.0f,%.0f,k%d,1,1,1,1,1,1,%s\n", g, g, t, end, k % 3,
          k || !i ? "" : (i * 20 - 11) "+" (i * 20 - 1)
        t = end
      }
    }
}' >"$dir/barriers.csv"
two=("$dir/barriers.csv" --platform v100-300w --gpus 2 --assume compute --no-cpu --bound 0.05)
succeed "two GPUs with barriers" '^written' "$f" compare "${two[@]}" --policy tightrope:bound=0.05,trust=counters -o "$dir/r.csv"
saved() { awk -F, -v who="$1" 'index($0, who) && $1 != "mean" { gsub(/"[^"]*"/, "policy"); print $15 }' "$dir/r.csv"; }
check "no bound broken" awk -F, '/tightrope/ && $1 != "mean" { gsub(/"[^"]*"/, "policy"); n++; if ($6 > 0.05) exit 1 } END { exit n != 1 }' \
  "$dir/r.csv"
check "more saved than by any clock of both: $(saved tightrope) %, $(saved baseline:static) %" \
  awk -v a="$(saved tightrope)" -v b="$(saved baseline:static)" 'BEGIN { exit !(b > 3 && a > 1.5 * b) }'
finish
