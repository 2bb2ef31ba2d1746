# Shared by all plots: Okabe-Ito colours (safe for colour-blind readers), quiet grid, names as they are.
if (terminal eq "svg") set terminal svg size 900,540 font "DejaVu Sans,13" background "white" noenhanced
if (terminal eq "png") set terminal pngcairo size 1350,810 font "DejaVu Sans,15" background "white" noenhanced
if (terminal eq "pdf") set terminal pdfcairo size 9in,5.4in font "DejaVu Sans,12" background "white" noenhanced
set output output
set datafile separator comma
set datafile missing "n/a"
set encoding utf8
set border 3 lc rgb "#555555"
set tics nomirror
set grid lc rgb "#dddddd" lw 1 lt 1
set key noenhanced
array colour[8] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00"]
array shape[8] = [7, 5, 9, 11, 13, 15, 6, 4]
pick(i) = 1 + (i - 1) % 8
dash(i) = 1 + int(i) % 5
# A text as the label of a tic, where gnuplot takes % for a format.
plain(text) = strstrt(text, "%") ? text[1:strstrt(text, "%")] . "%" . plain(text[strstrt(text, "%") + 1:*]) : text
