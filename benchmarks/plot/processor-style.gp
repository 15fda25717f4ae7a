# SPDX-License-Identifier: Apache-2.0
#
# What the pictures of the queue study have in common. A design has the same line in all of
# them: warm colours signal for every span, dotted ones never signal, cold ones signal for
# a batch, and otel-c's lines are black. The order is that of the columns.

set output image
set linetype 1 lc rgb "#c0392b" lw 1.6 pt 7 ps 0.6
set linetype 2 lc rgb "#e67e22" lw 1.6 pt 5 ps 0.6
set linetype 3 lc rgb "#d4ac0d" lw 1.6 pt 9 ps 0.7
set linetype 4 lc rgb "#8e44ad" lw 1.6 pt 11 ps 0.7 dt 3
set linetype 5 lc rgb "#85c1e9" lw 1.6 pt 7 ps 0.6
set linetype 6 lc rgb "#5dade2" lw 1.6 pt 5 ps 0.6
set linetype 7 lc rgb "#2471a3" lw 1.6 pt 9 ps 0.7
set linetype 8 lc rgb "#45b39d" lw 1.6 pt 11 ps 0.7
set linetype 9 lc rgb "#1e8449" lw 1.6 pt 13 ps 0.8
set linetype 10 lc rgb "#000000" lw 3.2 pt 7 ps 0.9
set linetype 11 lc rgb "#99a3a4" lw 1.6 pt 1 ps 0.6 dt 2
set border 3 lw 0.8
set tics nomirror out
set grid ytics lc "#dddddd"
set datafile missing "-"
set logscale x 2
set logscale y
set xtics (1, 2, 5, 10, 20)
set xlabel "threads that end spans" offset 0,0.4
set key noenhanced
