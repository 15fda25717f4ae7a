# SPDX-License-Identifier: Apache-2.0
#
# Draws the figures of `processor_system`: CPU time of a whole service. scripts/bench-plot.sh
# sets these:
#
#   bars    a file: name, median, first and third quartile, exporter thread (percent of a core)
#   about   a line of text below the title
#   image   what to write

set terminal svg size 760,420 dynamic enhanced font "sans,13" background "#ffffff"
set output image
set linetype 1 lc rgb "#99a3a4"
set linetype 2 lc rgb "#c0392b"
set linetype 3 lc rgb "#2471a3"
set linetype 4 lc rgb "#222222"
set title "What does tracing cost a whole service at the same load?\n{/*0.8 ".about."}"
set style fill solid 0.85 noborder
set border 3 lw 0.8
set tics nomirror out
set grid ytics lc "#dddddd"
unset key
set errorbars 0.6 lw 1.2 lc rgb "#777777"
set ylabel "CPU time of the process, percent of a core"
set yrange [0:*]
set offsets 0, 0, graph 0.12, 0
set xrange [-0.6:3.6]
set bmargin 4
plot bars using 0:2:3:4:(0.6):($0 + 1):xtic(1) with boxerrorbars lc variable, \
     bars using 0:2:(sprintf("%.1f %%", $2)) with labels offset 4,0.7 font ",12", \
     bars using 0:(0):($5 > 0 ? sprintf("exporter\nthread\n%.2f %%", $5) : "") with labels \
         offset 0,2.2 font ",11" textcolor "#ffffff"
