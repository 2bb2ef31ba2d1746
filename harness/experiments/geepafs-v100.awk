# Prepares the sweep that geepafs-v100.json needs: each workload takes 100 s at its highest clock, and the deep-learning
# workloads get the utilisation readings that the experiment assumes. The sweep is read twice:
#   foldline import dataset_performance.csv -o dataset.csv
#   awk -f harness/experiments/geepafs-v100.awk dataset.csv dataset.csv >geepafs-v100.csv
BEGIN {
  FS = OFS = ","
  busy = 85    # calibrated: GPU utilisation at the highest clock, %. What is idle there stays idle for as long
  memory = 50  # assumed: memory utilisation at the highest clock, %. It follows the speed
  scatter = 12 # calibrated: standard deviation of a reading of the memory utilisation, points
  n = split("3MM BScholes BWtest BiCG CFD FDTD FFT GeMM Reduct SRAD Schmidt SortNet Transpose Walsh", name, " ")
  for (i = 1; i <= n; i++)
    computes[name[i]] = 1 # programs of high-performance computing: as the simulator has them
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
    print "workload,sm_mhz,time_s,power_w,util_gpu_pct,util_mem_pct,util_mem_sd"
  next
}
{
  w = $at["workload"]; t = $at["time_s"]
}
NR == FNR && !($at["sm_mhz"] + 0 <= clock[w]) {
  clock[w] = $at["sm_mhz"] + 0; top[w] = t
}
NR > FNR {
  speed = top[w] / t
  readings = computes[w] ? ",," : sprintf("%.3f,%.3f,%g", 100 - (100 - busy) * speed, memory * speed, scatter)
  print w, $at["sm_mhz"], 100 / speed, $at["power_w"] + 0, readings
}
