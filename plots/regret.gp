# Regret of each policy against the best static clock and the clairvoyant schedule, as bars with their values.
# Input: a row for each policy, the best first. partial: some of its runs break the bound and do not count; its bars are
# hatched.
load plots . "/style.gp"
array name[64]
array s[64]
array c[64]
array part[64]
n = 0
set datafile missing # n/a is looked at here
num(text) = strlen(text) == 0 || text eq "n/a" ? NaN : real(text)
stats input using (n = n + 1, name[n] = written("policy"), s[n] = num(strcol("static")), c[n] = num(strcol("clairvoyant")), \
    part[n] = column("partial"), 1) nooutput
low = 0; high = 0
do for [i = 1:n] {
    if (s[i] > high) { high = s[i] }
    if (c[i] > high) { high = c[i] }
    if (s[i] < low) { low = s[i] }
    if (c[i] < low) { low = c[i] }
}
if (high == low) { high = 1 }
set xrange [low:high]
set yrange [-rows + 0.4:0.6]
set ytics () scale 0 textcolor rgb "#1b1f24"
do for [i = 1:n] { set ytics add (plain(name[i]) 1 - i) }
set xlabel "regret, % of the reference"
set grid noytics
set border 1
set style fill solid 1 noborder
# A value beside its bar, also where the bar has no length.
shown(v, i) = v == v ? sprintf(abs(v) < 0.005 ? "0" : abs(v) < 10 ? "%.2f" : "%.1f", v) : "n/a"
half = both ? 0.19 : 0
thick = both ? 0.16 : 0.3
do for [i = 1:n] {
    do for [k = 0:both] {
        v = k ? c[i] : s[i]
        set label 100 + 2 * i + k shown(v, i) at (v > 0 ? v : 0), 1 - i + (k ? -half : half) offset 0.5,0 textcolor rgb "#5b6570"
    }
}
set arrow 1 from 0, graph 0 to 0, graph 1 nohead lc rgb "#5b6570" lw 1
array middle[2] = [half, -half]
# Slanted strokes of paper across a bar, from its lower to its upper edge, cut at its ends.
step = 7. * (high - low) / (right - left)
do for [i = 1:n] {
    do for [k = 0:both] {
        v = k ? c[i] : s[i]
        if (int(part[i]) && v == v) {
            from = v < 0 ? v : 0
            to = v < 0 ? 0 : v
            foot = 1 - i + (k ? -half : half) - thick
            do for [m = 0:int((to - from) / step) + 1] {
                x = from + (m - 1) * step # at the foot; a step further right at the head
                a = x < from ? (from - x) / step : 0
                b = x + step > to ? (to - x) / step : 1
                if (b > a) { set arrow from x + a * step, foot + a * 2 * thick to x + b * step, foot + b * 2 * thick nohead front lc rgb "#ffffff" lw 2 }
            }
        }
    }
}
plot for [k = 1:1 + both] input using ((v = k == 1 ? s[$0 + 1] : c[$0 + 1]) / 2.):(middle[k] - $0):(v < 0 ? v : 0):(v < 0 ? 0 : v): \
    (middle[k] - thick - $0):(middle[k] + thick - $0) with boxxyerror lc rgb tint(k)
