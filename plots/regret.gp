# Regret of each policy against the best static clock and the clairvoyant schedule. Input: the CSV of foldline compare.
load plots . "/style.gp"
array names[200]
n = 0
array s[200]
array c[200]
set datafile missing # n/a is looked at here
num(text) = strlen(text) == 0 || text eq "n/a" ? NaN : real(text)
stats input using ((strcol("workload") eq "mean" && strcol("policy")[1:9] ne "baseline:" && n < 200) ? (n = n + 1, \
    names[n] = strcol("policy"), s[n] = num(strcol("regret_static_pct")), c[n] = num(strcol("regret_clairvoyant_pct")), 1) : 0) nooutput
top = 0
low = 0
do for [i = 1:n] {
    if (s[i] > top) { top = s[i] }
    if (c[i] > top) { top = c[i] }
    if (s[i] < low) { low = s[i] }
    if (c[i] < low) { low = c[i] }
}
if (top <= 0) { top = 1 }
set xrange [0.4:n + 0.6]
set yrange [low * 1.15:top * 1.15]
set boxwidth 0.36
set style fill solid 0.9 noborder
set xtics () rotate by -25 left
do for [i = 1:n] { set xtics add (plain(names[i]) i) }
set ylabel "regret, % of the reference's energy"
set title "What each policy left on the table (mean over the workloads where it held the bound)" font ",15"
set key top right
# room for the names, which hang down to the right: the longest below, the last beside
longest = 0
do for [i = 1:n] { if (strlen(names[i]) > longest) { longest = strlen(names[i]) } }
set bmargin longest > 16 ? (longest > 60 ? 17 : 3 + longest / 4.0) : 7
set rmargin n && strlen(names[n]) > 10 ? (strlen(names[n]) > 45 ? 40 : 0.85 * strlen(names[n])) : 8
do for [i = 1:n] {
    if (!(s[i] == s[i])) { set label "n/a" at i - 0.19, top * 0.02 center textcolor rgb "#777777" }
    if (!(c[i] == c[i])) { set label "n/a" at i + 0.19, top * 0.02 center textcolor rgb "#777777" }
}
set samples n > 1 ? n : 2
plot s using ($1 <= n ? $1 - 0.19 : NaN):($1 <= n ? s[$1] : NaN) with boxes lc rgb colour[1] title "against the best static clock", \
     c using ($1 <= n ? $1 + 0.19 : NaN):($1 <= n ? c[$1] : NaN) with boxes lc rgb colour[2] title "against the clairvoyant schedule"
