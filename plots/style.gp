# Shared by all pictures: size, type, colours that colour-blind readers can tell apart (after Okabe and Ito), title and legend.
# Lengths are pixels of an SVG, from its upper left corner; PNG and PDF are the same picture at their own scale.
if (terminal eq "svg") set terminal svg size width,height font "DejaVu Sans,12" background "white" noenhanced
if (terminal eq "page") set terminal svg size width,height font "DejaVu Sans,12" noenhanced
if (terminal eq "png") set terminal pngcairo size 2*scale*width,2*scale*height font "DejaVu Sans,9" fontscale 2*scale linewidth 2*scale pointscale 2*scale background "white" noenhanced
if (terminal eq "pdf") eval sprintf('set terminal pdfcairo size %.3fin,%.3fin font "DejaVu Sans,9" fontscale %.3f linewidth %.3f pointscale %.3f background "white" noenhanced', scale * width / 100., scale * height / 100., 0.96 * scale, scale, 0.7 * scale)
page = terminal eq "page" # marks carry a text for the reader's mouse
across(px) = 1. * px / width
up(px) = 1 - 1. * px / height
set lmargin at screen across(left)
set rmargin at screen across(right)
set tmargin at screen up(top)
set bmargin at screen up(bottom)
set datafile separator comma
set datafile missing "n/a"
set datafile columnheaders
set encoding utf8
set border 3 lc rgb "#5b6570"
set tics nomirror scale 0.5 textcolor rgb "#5b6570"
set grid lc rgb "#e3e7eb" lw 1 lt 1
unset key
set xlabel offset 0,0.4 textcolor rgb "#1b1f24"
set ylabel textcolor rgb "#1b1f24"
array colour[9] = ["#6b747d", "#0072b2", "#d55e00", "#00845f", "#b8558f", "#b37400", "#2f93cf", "#1b1f24", "#7d6c00"]
tint(i) = colour[1 + (i < 1 ? 0 : 1 + (i - 1) % 8)]
rgb(i) = i < 0 ? 0xa8330a : int("0x" . tint(int(i))[2:7]) # for lc rgb variable
pale(i) = rgb(i) + 0x90000000
dash(i) = 1 + int(i) % 5
# A text of the table, its commas as they were.
comma(text) = strstrt(text, "\037") ? text[1:strstrt(text, "\037") - 1] . "," . comma(text[strstrt(text, "\037") + 1:*]) : text
written(name) = comma(strcol(name))
# A text as the label of a tic, where gnuplot takes % for a format.
plain(text) = strstrt(text, "%") ? text[1:strstrt(text, "%")] . "%" . plain(text[strstrt(text, "%") + 1:*]) : text
if (strlen(title)) set label 9001 title at screen across(20), screen up(26) left font ",16" textcolor rgb "#1b1f24"
if (strlen(about)) set label 9002 about at screen across(20), screen up(26 + 22 * title_lines) left textcolor rgb "#5b6570"
do for [i = 1:legends] {
    set label 9100 + i legend_text[i] at screen across(legend_x[i]), screen up(legend_y[i]) left offset 1.3,-0.25
    if (legend_pt[i] >= 0) {
        set label 9100 + i point pt legend_pt[i] ps 1 lw 1.6 lc rgb (legend_lc[i] < 0 ? "#a8330a" : tint(legend_lc[i]))
    }
}
