# SPDX-License-Identifier: Apache-2.0
#
# Draws the figures of `span`: what each case costs, in units of two readings of the
# processor's counter, which is what a span consists of. scripts/bench-plot.sh sets these:
#
#   cases   a file: name, ratio, nanoseconds (minima)
#   about   a line of text below the title
#   image   what to write

set terminal svg size 760,420 dynamic enhanced font "sans,13" background "#ffffff"
set output image
set title "What a span costs the thread that makes it\n{/*0.8 ".about."}"
set style fill solid 0.85 noborder
set border 3 lw 0.8
set tics nomirror out
set grid xtics lc "#dddddd"
unset key
set lmargin 22
set rmargin 14
set xlabel "times two readings of the counter"
set xrange [0:*]
set yrange [] reverse
set ytics noenhanced
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead dt 2 lc "#c0392b" lw 1.4
half = 0.35
plot cases using ($2/2):0:($2/2):(half):ytic(1) with boxxyerror lc "#2471a3", \
     cases using 2:0:(sprintf("%.2f (%.1f ns)", $2, $3)) with labels left offset 0.7,0 font ",11"
