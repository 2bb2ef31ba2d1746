# Activity, power and clock of a trace over time. Input: a series, one row per device and bin of time.
load plots . "/style.gp"
set datafile nocolumnheaders
set datafile missing NaN # rows of other devices are not there: an undefined one would break the line
last = 0
stats input using (column("device") > last ? (last = column("device"), 1) : 0) nooutput
# Which of the three the file knows: a panel without a number is left out.
busy = 0; util = 0; power = 0; clock = 0
stats input using (valid(3) ? (busy = 1, 1) : 0) nooutput
stats input using (valid(7) ? (util = !busy, 1) : 0) nooutput
stats input using (valid(5) ? (power = 1, 1) : 0) nooutput
stats input using (valid(6) ? (clock = 1, 1) : 0) nooutput
activity = busy || util || (!power && !clock)
panels = activity + power + clock
each = (bottom - top + 30) / panels
done = 0
set multiplot
set key at screen across(width - 16), screen up(top - 16) right maxrows 1 samplen 1.5
do for [what in "activity power clock"] {
    if (value(what)) {
        set tmargin at screen up(top + done * each)
        set bmargin at screen up(top + done * each + each - 30)
        done = done + 1
        set format x (done < panels ? "" : "%g")
        set xlabel (done < panels ? "" : "time, s")
        set yrange [0:*]
        if (what eq "activity") {
            set ylabel "active, %"
            set yrange [0:105]
            plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):(column(util ? "util_gpu_pct" : "busy_pct")) with steps lw 1.5 \
                lc rgb tint(d + 1) title sprintf("GPU %d", d)
        }
        if (what eq "power") {
            set ylabel "power, W"
            plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):"power_w" with lines lw 1.8 \
                lc rgb tint(d + 1) title sprintf("GPU %d", d)
        }
        if (what eq "clock") {
            set ylabel "SM clock, MHz"
            set autoscale y
            set offsets 0, 0, graph 0.05, graph 0.05
            plot for [d = 0:last] input using (column("device") == d ? column("t_s") : NaN):"sm_mhz" with steps lw 1.8 \
                lc rgb tint(d + 1) title sprintf("GPU %d", d)
        }
        unset key
        unset label
    }
}
unset multiplot
