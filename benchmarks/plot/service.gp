# SPDX-License-Identifier: Apache-2.0
#
# Draws the figures of `service`: the rate of the three programs, and what tracing takes.
# scripts/bench-plot.sh sets these:
#
#   rates   a file: name, median, first and third quartile, best (requests a second)
#   losses  a file: name, median, first and third quartile (percent)
#   about   a line of text below the title
#   image   what to write

set terminal svg size 960,420 dynamic enhanced font "sans,13" background "#ffffff"
set output image
set linetype 1 lc rgb "#7f8c8d"
set linetype 2 lc rgb "#76a5c9"
set linetype 3 lc rgb "#2471a3"
set linetype 4 lc rgb "#1a5276"
set linetype 5 lc rgb "#b9770e"
set multiplot layout 1,2 title "A service with SQLite, every request traced and exported\n{/*0.8 ".about."}"
set style fill solid 0.85 noborder
set border 3 lw 0.8
set tics nomirror out
set grid ytics lc "#dddddd"
unset key
set errorbars 0.6 lw 1.2 lc rgb "#222222"

set lmargin 10
set bmargin 4
set title "thousand requests a second, server on a core of its own" font ",12"
set yrange [0:*]
set offsets 0, 0, graph 0.12, 0
set xrange [-0.6:2.6]
plot rates using 0:($2/1000):($3/1000):($4/1000):(0.6):($0 + 1):xtic(1) \
         with boxerrorbars lc variable, \
     rates using 0:($2/1000):(sprintf("%.1f", $2/1000)) with labels offset 3.2,0.7 font ",11"

# A loss below zero is noise, and is shown.
set title "taken from it, percent (median, quartiles)" font ",12"
set lmargin 12
set offsets 0, 0, 0, 0
set yrange [*<0:*]
set xrange [-0.6:3.6]
set xzeroaxis lt -1 lw 0.8
set arrow 1 from graph 0, first 5 to graph 1, first 5 nohead dt 2 lc "#c0392b" lw 1.4
set label 1 "5 %" at graph 0.01, first 5 offset 0,0.6 font ",11" textcolor "#c0392b"
plot losses using 0:2:3:4:(0.6):($0 + 2):xtic(1) with boxerrorbars lc variable, \
     losses using 0:2:(sprintf("%.1f", $2)) with labels offset 2.8,0.7 font ",11"
unset multiplot
