# What the runs of each policy saved, and how much slower they were: two panels, a row for each policy, the best first.
# Input: names, and spans and runs with panel and row.
load plots . "/style.gp"
is(what, panel) = strcol("what") eq what && column("panel") == panel
at(what, panel) = is(what, panel) ? -column("row") : NaN
set multiplot
set yrange [-rows + 0.4:0.6]
unset ytics
set border 1
set style fill solid 1 noborder
do for [k = 1:2] {
    set lmargin at screen across(from[k])
    set rmargin at screen across(to[k])
    set xrange [low[k]:high[k]]
    set xlabel label[k]
    set xtics step[k]
    if (k == 2 && bound == bound) {
        set arrow 1 from bound, graph 0 to bound, graph 1 nohead lc rgb "#a8330a" lw 1.4 dt (8,4) back
        set label 1 bound_text at bound, graph 1 offset 0,0.6 textcolor rgb "#a8330a" center
        if ((bound - low[k]) / (high[k] - low[k]) > 0.8) { set label 1 right }
    }
    plot input using "low":(at("all", k)):(column("high") - column("low")):(0):(rgb(column("colour"))) with vectors nohead lw 1.2 lc rgb variable, \
         input using ((column("low") + column("high")) / 2):(at("half", k)):"low":"high":(at("half", k) - 0.2):(at("half", k) + 0.2):(pale(column("colour"))) \
             with boxxyerror lc rgb variable, \
         input using "low":(at("median", k) - 0.3):(0):(0.6):(rgb(column("colour"))) with vectors nohead lw 2 lc rgb variable, \
         input using "x":(at("run", k)):(0.6):"point":(rgb(column("colour"))) with points ps variable pt variable lc rgb variable lw 1.4, \
         input using (low[k]):(at("name", k)):(written("text")):(rgb(column("colour"))) with labels right offset -1,0 textcolor rgb variable, \
         input using (high[k]):(at("beside", k)):(written("text")):(rgb(column("colour"))) with labels left offset 1,0 textcolor rgb variable
    do for [i = 9001:9002] { unset label i }
    do for [i = 1:legends] { unset label 9100 + i }
}
unset multiplot
