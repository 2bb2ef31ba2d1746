# Saving over each parameter whose values differ, one panel each (the first six). Input: a table made by foldline plot.
load plots . "/style.gp"
set datafile columnheaders
panels = 0
array what[64]
array lines[64]
array least[64]
array most[64]
array settings[1100]
lines[64] = 0; least[64] = 0; most[64] = 0 # the panels that are left out
stats input using (p = int(column("panel")), p = p > 6 ? 64 : p, new = p < 64 && p > panels, panels = new ? p : panels, \
    what[p] = strcol("what"), \
    lines[p] = new || !(lines[p] > column("line")) ? column("line") : lines[p], \
    least[p] = new || column("x") < least[p] ? column("x") : least[p], \
    most[p] = new || column("x") > most[p] ? column("x") : most[p], \
    at = 1 + 16 * p + (column("line") < 15 ? int(column("line")) : 15), settings[at] = strcol("settings"), 1) nooutput
across = panels > 1 ? 2 : 1
set multiplot layout (panels + across - 1) / across, across title "Sensitivity to parameters" font ",15"
set offsets graph 0.05, graph 0.05, graph 0.08, graph 0.08
set ylabel "saved, %"
set xtics rotate by -35 left font ",11"
do for [p = 1:panels] {
    set xlabel what[p]
    if (least[p] > 0 && most[p] / least[p] >= 50) { set logscale x } else { unset logscale x }
    if (lines[p] > 0 && lines[p] < 12) { set key outside right top samplen 1.6 font ",10" } else { unset key }
    if (lines[p] > 11) { # too many to tell apart: a bundle
        plot for [l = 0:int(lines[p])] input using (column("panel") == p && column("line") == l ? column("x") : NaN):"mean" \
            with lines lw 1 lc rgb "#8050a0c8" notitle
        continue
    }
    plot for [l = 0:int(lines[p])] input using (column("panel") == p && column("line") == l ? column("x") : NaN):"mean":"low":"high" \
             with yerrorbars pt 7 ps 0.5 lw 1 lc rgb colour[pick(l + 1)] notitle, \
         for [l = 0:int(lines[p])] input using (column("panel") == p && column("line") == l ? column("x") : NaN):"mean" \
             with lines lw 2 dt dash(l) lc rgb colour[pick(l + 1)] title (lines[p] > 0 && lines[p] < 12 ? settings[1 + 16 * p + l] : "")
}
unset multiplot
