# Share of time at each SM clock, all devices together, as bars with their values. Input: a row for each clock.
load plots . "/style.gp"
n = 0
array name[64]
array share[64]
stats input using (n = n + 1, name[n] = written("clock"), share[n] = column("share"), 1) nooutput
set xrange [0:most > 0 ? most : 1]
set yrange [-rows + 0.4:0.6]
set ytics () scale 0 textcolor rgb "#1b1f24"
do for [i = 1:n] { set ytics add (name[i] 1 - i) }
do for [i = 1:n] {
    set label 100 + i sprintf(share[i] == 0 ? "0" : share[i] < 10 ? "%.2g" : "%.0f", share[i]) . " %" at share[i], 1 - i offset 0.5,0 \
        textcolor rgb "#5b6570"
}
set xlabel "share of time, %"
set grid noytics
set border 1
set style fill solid 1 noborder
plot input using (column("share") / 2):(-$0):(0):"share":(-$0 - 0.32):(-$0 + 0.32) with boxxyerror lc rgb tint(1)
