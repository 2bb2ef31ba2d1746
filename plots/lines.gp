# Panels of lines, each named at its end: regret over steps, saving over a parameter, clock and power over time.
# Input: a point per row; an empty row lifts the pen.
load plots . "/style.gp"
is(what) = strcol("what") eq what && column("panel") == i
# Of itself a logarithmic axis has numbers at powers of ten alone: one that holds fewer than two of them would have none
# to be read by.
narrow(from, to) = floor(log10(to)) - ceil(log10(from)) < 1
steps(from, to) = to / from < 3 ? "1 1.2 1.5 2 2.5 3 4 5 6 7 8 9" : to / from < 10 ? "1 2 3 5 7" : "1 2 5"
set multiplot
do for [i = 1:panels] {
    set lmargin at screen across(panel_left[i])
    set rmargin at screen across(panel_right[i])
    set tmargin at screen up(panel_top[i])
    set bmargin at screen up(panel_bottom[i])
    if (panel_logx[i]) { set logscale x } else { unset logscale x }
    if (panel_logy[i]) { set logscale y } else { unset logscale y }
    set xrange [panel_x0[i]:panel_x1[i]]
    set yrange [panel_y0[i]:panel_y1[i]]
    set title plain(panel_title[i]) offset 0,-0.5
    set xlabel panel_xlabel[i]
    set ylabel panel_ylabel[i]
    set format y (panel_logy[i] && panel_y1[i] > 1e4 ? "%.0s%c" : "%g")
    set format x (panel_quiet[i] ? "" : panel_logx[i] && panel_x0[i] >= 1 ? "%.0s%c" : "%g")
    if (panel_logy[i]) { set ytics 10 } else { set ytics autofreq }
    if (strlen(panel_ticks[i])) { eval "set xtics (" . panel_ticks[i] . ")" } else { set xtics autofreq }
    if (panel_logx[i] && !strlen(panel_ticks[i]) && narrow(panel_x0[i], panel_x1[i])) {
        set xtics ()
        do for [k = floor(log10(panel_x0[i])):floor(log10(panel_x1[i]))] {
            do for [m in steps(panel_x0[i], panel_x1[i])] { set xtics add (m * 10.0**k) }
        }
    }
    plot input using (is("band") ? column("x") : NaN):"low":"high" with filledcurves fc rgb "#d7dce1" fs solid noborder, \
         input using (is("slope") ? column("x") : NaN):"y" with lines lc rgb "#6b747d" lw 1.2 dt (2,3), \
         input using (is("faint") ? column("x") : NaN):"y" with lines lc rgb "#c3c9cf" lw 0.8, \
         input using (is("line") ? column("x") : NaN):"y":(rgb(column("colour"))) with lines lc rgb variable lw 1.8, \
         input using (is("dashed") ? column("x") : NaN):"y":(rgb(column("colour"))) with lines lc rgb variable lw 1.8 dt (7,5), \
         input using (is("strong") ? column("x") : NaN):"y":(rgb(column("colour"))) with lines lc rgb variable lw 3, \
         input using (is("range") ? column("x") : NaN):"y":(rgb(column("colour"))) with lines lw 1 lc rgb variable, \
         input using (is("wall") ? column("x") : NaN):"y":(rgb(column("colour"))) with lines lc rgb variable lw 1.4 dt (8,4), \
         input using (is("ring") ? column("x") : NaN):"y":(rgb(column("colour"))) with points pt 6 ps 0.8 lw 1.4 lc rgb variable, \
         input using (is("cross") ? column("x") : NaN):"y":(rgb(column("colour"))) with points pt 2 ps 1.3 lw 1.6 lc rgb variable, \
         input using (is("point") ? column("x") : NaN):"y":(rgb(column("colour"))) with points pt 7 ps 0.7 lc rgb variable, \
         input using (is("name") ? column("x") : NaN):"y":(written("text")):(rgb(column("colour"))) with labels left offset 0.8,0 textcolor rgb variable, \
         input using (is("text") ? column("x") : NaN):"y":(written("text")):(rgb(column("colour"))) with labels left textcolor rgb variable, \
         for [k = 1:page] input using (is("tip") ? column("x") : NaN):"y":(written("tip")) with labels hypertext point pt 7 ps 1.2 lc rgb "#ff000000"
    unset label 9001
    unset label 9002
}
unset multiplot
