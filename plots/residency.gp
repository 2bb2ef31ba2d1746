# Share of time at each SM clock, all devices together. Input: a table made by foldline plot from a timeline.
load plots . "/style.gp"
set datafile columnheaders
n = 0
array name[64]
stats input using (n = n + 1, name[n] = column("low") == column("high") ? sprintf("%g", column("low")) : \
    sprintf("%.0f to %.0f", column("low"), column("high")), 1) nooutput
set xrange [0.4:n + 0.6]
set yrange [0:*]
set boxwidth 0.8
set style fill solid 0.9 noborder
set xtics () rotate by -35 left
do for [i = 1:n] { set xtics add (plain(name[i]) i) }
set grid noxtics
set xlabel "SM clock, MHz"
set ylabel "share of time, %"
set title "Where the time went" font ",15"
set bmargin 6
unset key
plot input using ($0 + 1):(100 * column("share")) with boxes lc rgb colour[1]
