# Prepares the sweep that mf-gpoeo-3080ti.json needs: each kernel takes 20 ms at the highest clocks, and the requests of
# 2100 MHz stand at the 1935 MHz that the board reached. The sweep of the authors' table is read twice:
#   foldline import aggregated_all_kernels_effective.csv \
#     --map 'workload=NAME,sm_mhz=SM,mem_mhz=MEM,time_s=MS/1000,energy_j=MJ/1000' -o kernels.csv
#   awk -f harness/experiments/mf-gpoeo-3080ti.awk kernels.csv kernels.csv >rtx3080ti.csv
BEGIN {
  FS = OFS = ","
}
FNR == 1 {
  head = 0
}
/^#/ {
  next
}
!head {
  head = 1
  for (i = 1; i <= NF; i++)
    at[$i] = i
  if (NR > FNR)
    print "workload,sm_mhz,mem_mhz,time_s,power_w"
  next
}
{
  w = $at["workload"]; t = $at["time_s"]; sm = $at["sm_mhz"] + 0 > 1935 ? 1935 : $at["sm_mhz"]
}
NR == FNR && sm == 1935 && $at["mem_mhz"] == 9501 {
  top[w] = t
}
NR > FNR && top[w] > 0 && t > 0 {
  print w, sm, $at["mem_mhz"], 0.02 * t / top[w], $at["power_w"] + 0
}
