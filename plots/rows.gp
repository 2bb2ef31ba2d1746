# Policies as rows, the best first, with their intervals. Input: a row each with mean, ends of the interval, mark and colour.
load plots . "/style.gp"
n = 0
array name[64]
stats input using (n = n + 1, name[n] = written("policy"), 1) nooutput
set yrange [-rows + 0.4:0.6]
set ytics () scale 0 textcolor rgb "#1b1f24"
do for [i = 1:n] { set ytics add (plain(name[i]) 1 - i) }
set xlabel x_label
set grid noytics
set border 1
if (exists("middle")) {
    array beside[64]
    k = 0
    stats input using (k = k + 1, beside[k] = written("beside"), 1) nooutput
    do for [i = 1:k] { set label beside[i] at graph 1.015, first 1 - i left textcolor rgb "#5b6570" }
}
if (exists("middle")) set arrow from first middle, graph 0 to first middle, graph 1 nohead lc rgb "#5b6570" lw 1 dt 2
set offsets graph 0.04, graph 0.04, 0, 0
plot input using "low":(-$0):(column("high") - column("low")):(0):(rgb(column("colour"))) with vectors nohead lw 2 lc rgb variable, \
     input using "mean":(-$0):(1.1):"point":(rgb(column("colour"))) with points ps variable pt variable lc rgb variable lw 1.6, \
     for [k = 1:page] input using "mean":(-$0):(written("tip")) with labels hypertext point pt 7 ps 1.4 lc rgb "#ff000000"
