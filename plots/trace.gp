# Activity, power and clock of a trace over time. Input: the series of foldline trace stats -o, one row per device and bin.
load plots . "/style.gp"
set datafile missing NaN # rows of other devices are not there: an undefined one would break the line
last = 0
stats input using (column("device") > last ? (last = column("device"), 1) : 0) nooutput
# Which of the three the file knows: a panel without a number is left out.
busy = 0; util = 0; power = 0; clock = 0
stats input using (valid(3) ? (busy = 1, 1) : 0) nooutput
stats input using (valid(7) ? (util = !busy, 1) : 0) nooutput
stats input using (valid(5) ? (power = 1, 1) : 0) nooutput
stats input using (valid(6) ? (clock = 1, 1) : 0) nooutput
activity = busy || util || (!power && !clock)
panels = activity + power + clock
set multiplot layout panels, 1 title "Trace over time" font ",15"
set lmargin 11
set rmargin 14
set key outside right top vertical maxcols 1 samplen 1.5
set offsets 0, 0, graph 0.05, graph 0.05
set xlabel "time, s"
if (activity) {
    set ylabel "active, %"
    set yrange [0:105]
    plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):(column(util ? "util_gpu_pct" : "busy_pct")) with steps lw 1.5 \
        lc rgb colour[pick(d + 1)] title sprintf("GPU %d", d)
    set autoscale y
}
if (power) {
    set ylabel "power, W"
    plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):"power_w" with lines lw 2 \
        lc rgb colour[pick(d + 1)] title activity ? "" : sprintf("GPU %d", d)
}
if (clock) {
    set ylabel "SM clock, MHz"
    plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):"sm_mhz" with steps lw 2 \
        lc rgb colour[pick(d + 1)] title (activity || power) ? "" : sprintf("GPU %d", d)
}
unset multiplot
