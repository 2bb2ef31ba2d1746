# Two quantities of every policy: energy saved against slowdown, or energy per request against latency. Input: a table of
# marks, the Pareto front, and names at places where they cover nothing.
load plots . "/style.gp"
is(what) = strcol("what") eq what
solid(what) = what eq "mark" || what eq "paper" || what eq "box"
ink(i) = i == -2 ? 0xffffff : rgb(i)
set xrange [x0:x1]
set yrange [y0:y1]
set xlabel x_label
set ylabel y_label
set xtics format "%g"
set ytics y_step format "%g"
if (x_bound == x_bound) {
    set arrow 1 from x_bound, graph 0 to x_bound, graph 1 nohead lc rgb "#a8330a" lw 1.4 dt (8,4) back
    beyond = (x_bound - x0) / (x1 - x0) > 0.75
    set label 1 bound_text at x_bound, graph 1 offset (beyond ? -0.5 : 0.5), 0.6 textcolor rgb "#a8330a"
    if (beyond) { set label 1 right }
}
size = many ? 0.6 : 1.1
plot input using (is("front") ? column("x") : NaN):"y" with steps lc rgb "#6b747d" lw 1.4 dt (2,3), \
     input using (is("range") && !many ? column("x") : NaN):"y":"dx":"dy":(pale(column("colour"))) with vectors nohead lw 0.8 lc rgb variable, \
     input using (is("leader") ? column("x") : NaN):"y":"dx":"dy" with vectors nohead lc rgb "#6b747d" lw 0.7, \
     input using (solid(strcol("what")) ? column("x") : NaN):"y":(size * column("size")):"point":(ink(column("colour"))) with points ps variable pt variable lc rgb variable lw 1.6, \
     input using (is("name") ? column("x") : NaN):"y":(written("text")) with labels left textcolor rgb "#1b1f24", \
     for [k = 1:page] input using (is("mark") ? column("x") : NaN):"y":(written("text")) with labels hypertext point pt 7 ps 1.4 lc rgb "#ff000000"
