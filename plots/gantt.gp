# What each rank of a pipeline did: bars coloured by clock, waiting in sand; below, what the boards drew. Input: run --instructions, of
# one plan or of two above each other.
load plots . "/style.gp"
set multiplot
set xrange [x0:x1]
set yrange [ranks - 0.4:-0.6]
set ytics 0,rank_step scale 0 format "rank %g"
set grid noytics
set format x ""
set style fill solid 1 noborder
set cbrange [mhz0:mhz1]
set palette defined (0 "#2f6db5", 0.5 "#9ccfa5", 1 "#d9622b") # slow is blue, fast is red: apart in grey, too
set colorbox user origin screen across(right + 14),screen up(chart_top[1] + chart_height) size screen across(12),screen up(chart_top[1]) - up(chart_top[1] + chart_height)
set cblabel "SM clock, MHz" offset 1,0
computes(t) = t eq "forward" || t eq "backward"
bar(t) = t eq "backward" ? 0.36 : t eq "forward" ? 0.24 : 0.14
is(w, t) = w eq "computes" ? computes(t) : w eq "waits" ? t eq "wait" : !computes(t) && t ne "wait" && t ne "power"
at(w) = column("plan") == plan && is(w, strcol("what")) ? column("rank") : NaN
do for [plan = 1:plans] {
    set tmargin at screen up(chart_top[plan])
    set bmargin at screen up(chart_top[plan] + chart_height)
    set label 9010 chart_name[plan] at screen across(left), screen up(chart_top[plan] - 9) left textcolor rgb tint(plan)
    plot input using "start_s":(at("waits")):"start_s":"end_s":(at("waits") - 0.36):(at("waits") + 0.36) with boxxyerror lc rgb "#ece2c6", \
         input using "start_s":(at("others")):"start_s":"end_s":(at("others") - 0.14):(at("others") + 0.14) with boxxyerror lc rgb "#8b949d", \
         input using "start_s":(at("computes")):"start_s":"end_s":(at("computes") - bar(strcol("what"))):(at("computes") + bar(strcol("what"))):"sm_mhz" with boxxyerror lc palette
    unset label
    unset colorbox
}
set tmargin at screen up(power_top)
set bmargin at screen up(bottom)
set yrange [0:*]
set ytics autofreq scale 0.5 format "%g"
set grid ytics
set format x "%g"
set xlabel "time, s"
set ylabel "all boards, W"
drawn(plan) = strcol("what") eq "power" && column("plan") == plan ? column("start_s") : NaN
plot for [plan = 1:plans] input using (drawn(plan)):"power_w" with steps lw 1.4 lc rgb tint(plan)
unset multiplot
