# Energy saved against slowdown. Input: the CSV of foldline compare. Large marks: means over workloads; dots: each workload.
load plots . "/style.gp"
array names[200]
n = 0
array slow[200]
array save[200]
array base[200]
array kind[200]
policies = 0
baselines = 0
array cross[4] = [1, 2, 3, 10]
stats input using ((strcol("workload") eq "mean" && n < 200) ? (n = n + 1, names[n] = strcol("policy"), \
    slow[n] = 100 * column("slowdown"), save[n] = column("energy_saving_pct"), base[n] = (strcol("policy")[1:9] eq "baseline:"), 1) : 0) nooutput

do for [i = 1:n] {
    if (base[i]) { baselines = baselines + 1; kind[i] = baselines } else { policies = policies + 1; kind[i] = policies }
}

# The front: no other policy (baselines aside) is both faster and saves more.
array front[200]
m = 0
do for [i = 1:n] {
    best = !base[i]
    do for [k = 1:n] {
        if (!base[k] && k != i && ((slow[k] < slow[i] && save[k] >= save[i]) || (slow[k] <= slow[i] && save[k] > save[i]))) { best = 0 }
    }
    if (best) { m = m + 1; front[m] = i }
}
# by slowdown
do for [i = 1:m] { do for [k = i + 1:m] { if (slow[front[k]] < slow[front[i]]) { t = front[i]; front[i] = front[k]; front[k] = t } } }

set key outside right top Left reverse spacing 1.3 samplen 1
set xlabel "slowdown against the driver's default, %"
set ylabel "energy saved, %"
set title "Energy against time: up and left is better" font ",15"
set offsets graph 0.05, graph 0.05, graph 0.08, graph 0.05
set style line 90 lc rgb "#999999" lw 2 dt 2
plot input using (strcol("workload") eq "mean" || strcol("policy")[1:9] eq "baseline:" ? NaN : 100 * column("slowdown")):"energy_saving_pct" \
         with points pt 7 ps 0.35 lc rgb "#bbbbbb" title "each workload", \
     front using ($1 <= m ? slow[front[$1]] : NaN):($1 <= m ? save[front[$1]] : NaN) with steps ls 90 title "Pareto front", \
     for [i = 1:n] "+" using (slow[i]):(save[i]) every ::0::0 with points pt (base[i] ? cross[1 + (kind[i] - 1) % 4] : shape[pick(kind[i] + int((kind[i] - 1) / 8))]) ps (base[i] ? 1.3 : 1.6) lw 2 \
         lc rgb (base[i] ? "#555555" : colour[pick(kind[i])]) title names[i]
