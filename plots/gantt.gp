# What each rank of a pipeline did: bars coloured by clock, waiting pale; below, what the boards drew. Input: run --instructions.
load plots . "/style.gp"
set multiplot
edge = top + (bottom - top) * 0.68
set tmargin at screen up(top)
set bmargin at screen up(edge)
set xrange [x0:x1]
set yrange [ranks - 0.4:-0.6]
set ytics 0,1 scale 0 format "rank %g"
set grid noytics
set format x ""
set style fill solid 1 noborder
set cbrange [mhz0:mhz1]
set palette defined (0 "#2f6db5", 0.5 "#9ccfa5", 1 "#d9622b") # slow is blue, fast is red: apart in grey, too
set colorbox user origin screen across(right + 14),screen up(edge) size screen across(12),screen up(top) - up(edge)
set cblabel "SM clock, MHz" offset 1,0
computes(t) = t eq "forward" || t eq "backward"
bar(t) = t eq "backward" ? 0.36 : t eq "forward" ? 0.24 : 0.05
is(w, t) = w eq "computes" ? computes(t) : w eq "waits" ? t eq "wait" : !computes(t) && t ne "wait" && t ne "power"
at(w) = is(w, strcol("what")) ? column("rank") : NaN
plot input using "start_s":(at("waits")):"start_s":"end_s":(at("waits") - bar("wait")):(at("waits") + bar("wait")) with boxxyerror lc rgb "#c3cad1", \
     input using "start_s":(at("others")):"start_s":"end_s":(at("others") - 0.14):(at("others") + 0.14) with boxxyerror lc rgb "#8b949d", \
     input using "start_s":(at("computes")):"start_s":"end_s":(at("computes") - bar(strcol("what"))):(at("computes") + bar(strcol("what"))):"sm_mhz" with boxxyerror lc palette
unset label
unset colorbox
set tmargin at screen up(edge + 14)
set bmargin at screen up(bottom)
set yrange [0:*]
set ytics autofreq format "%g"
set grid ytics
set format x "%g"
set xlabel "time, s"
set ylabel "all boards, W"
plot input using (strcol("what") eq "power" ? column("start_s") : NaN):"power_w" with steps lw 1.4 lc rgb tint(1)
unset multiplot
