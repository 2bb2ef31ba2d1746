# Clock and power over time. Input: canonical telemetry (of foldline run --timeline), one line per device.
load plots . "/style.gp"
set datafile missing NaN # rows of other devices: not there, where an undefined one would break the line
last = 0
stats input using (column("device") > last ? (last = column("device"), 1) : 0) nooutput
set multiplot layout 2, 1
set lmargin 11
set rmargin 14
set key outside right top samplen 2
set bmargin 0.6
set tmargin 2.5
set format x ""
set ylabel "SM clock, MHz"
set title "Clock and power over time" font ",15"
set offsets 0, 0, graph 0.1, graph 0.1
plot for [d = 0:last] input using (column("device") == d ? column("t_ns") * 1e-9 : NaN):"sm_mhz" with steps lw 2 \
    lc rgb colour[pick(d + 1)] title sprintf("GPU %d", d)
unset title
set tmargin 0.6
set bmargin 3.5
set format x "%g"
set xlabel "time, s"
set ylabel "power, W"
plot for [d = 0:last] input using (column("device") == d ? column("t_ns") * 1e-9 : NaN):"power_w" with lines lw 2 \
    lc rgb colour[pick(d + 1)] notitle
unset multiplot
