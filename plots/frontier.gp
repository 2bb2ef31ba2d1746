# Energy of one iteration of a pipeline over its time. Input: a row per point, series after series; an empty row lifts the pen.
load plots . "/style.gp"
is(what) = strcol("what") eq what
set xrange [x0:x1]
set yrange [y0:y1]
set xlabel "time of an iteration, s"
set ylabel "energy of an iteration, all ranks, J"
set ytics y_step format "%g"
mark(what) = is(what) ? column("x") : NaN
plot input using (mark("bound")):"y" with linespoints lc rgb tint(0) lw 1 dt (2,3) pt 6 ps 0.2, \
     input using (mark("plan")):"y" with lines lc rgb tint(1) lw 1.4, \
     input using (mark("judged")):"y" with lines lc rgb tint(6) lw 1 dt (7,5), \
     input using (is("bound") ? NaN : column("x")):"y":"point":(rgb(column("colour"))) with points ps 0.8 pt variable lc rgb variable lw 1.4, \
     for [k = 1:page] input using (is("bound") ? NaN : column("x")):"y":(written("text")) with labels hypertext point pt 7 ps 1.4 lc rgb "#ff000000"
