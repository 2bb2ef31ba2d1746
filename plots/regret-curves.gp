# Cumulative regret of a distribution replay over its steps, one panel per workload (the first six of the plain variant).
# Input: FILE.regret.csv of foldline compare --csv FILE.csv.
load plots . "/style.gp"
set datafile columnheaders
w = 0
n = 0
array work[64]
array name[64]
work[1] = ""; name[1] = ""
place(list, text) = strstrt(list, "|" . text . "|")
works = "|"
names = "|"
stats input using (plain = strcol("variant") eq "", \
    new = plain && w < 6 && place(works, strcol("workload")) == 0, w = new ? w + 1 : w, \
    work[w > 0 ? w : 1] = new ? strcol("workload") : work[w > 0 ? w : 1], works = new ? works . strcol("workload") . "|" : works, \
    new = plain && n < 60 && place(names, strcol("policy")) == 0, n = new ? n + 1 : n, \
    name[n > 0 ? n : 1] = new ? strcol("policy") : name[n > 0 ? n : 1], names = new ? names . strcol("policy") . "|" : names, 1) nooutput
if (w == 0) { exit error "no rows of a plain node" }
across = w > 1 ? 2 : 1
down = (w + across - 1) / across
if (terminal eq "svg") set terminal svg size 1100,340 * down + 40 font "DejaVu Sans,13" background "white" noenhanced
if (terminal eq "png") set terminal pngcairo size 1650,510 * down + 60 font "DejaVu Sans,15" background "white" noenhanced
if (terminal eq "pdf") eval sprintf('set terminal pdfcairo size 11in,%.1fin font "DejaVu Sans,11" background "white" noenhanced', 3.4 * down)
set multiplot layout down, across title "Cumulative regret (EnergyUCB, Eq. 3): mean over the seeds" font ",15"
set xlabel "steps, thousands"
set ylabel "regret"
set logscale y
set format y "%.0e"
set key outside right top samplen 1.6 spacing 0.95 font ",9"
do for [i = 1:w] {
    set title work[i] font ",13"
    plot for [k = 1:n] input using (strcol("variant") eq "" && strcol("workload") eq work[i] && strcol("policy") eq name[k] ? \
        column("step") * 1e-3 : NaN):(column("reward_regret") > 0 ? column("reward_regret") : NaN) with lines lw 2 \
        dt dash((k - 1) / 8) lc rgb colour[pick(k)] title name[k]
}
unset multiplot
