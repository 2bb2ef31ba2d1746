# Saving of each policy with its 95 % interval, the best first. Input: a table made by foldline plot from the CSV of compare.
load plots . "/style.gp"
set datafile columnheaders
n = 0
array name[64]
stats input using (n = n + 1, name[n] = strcol("policy"), 1) nooutput
set yrange [-n + 0.3:0.7]
set ytics ()
do for [i = 1:n] { set ytics add (plain(name[i]) 1 - i) }
set xlabel "saved against the driver's default, %"
set title "What each policy saves: mean and 95 % interval over workloads and seeds" font ",15"
set grid noytics
unset key
set offsets graph 0.03, graph 0.03, 0, 0
plot input using "mean":(-$0):"low":"high" with xerrorbars pt 7 ps 0.01 lw 2 lc rgb "#999999", \
     input using (column("baseline") > 0 ? NaN : column("mean")):(-$0) with points pt 7 ps 1.1 lc rgb colour[1], \
     input using (column("baseline") > 0 ? column("mean") : NaN):(-$0) with points pt 2 ps 1.1 lw 2 lc rgb "#555555"
