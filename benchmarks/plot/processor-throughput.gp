# SPDX-License-Identifier: Apache-2.0
#
# Draws of `processor`: how many spans a second come out of each queue when threads end spans
# as fast as they can. scripts/bench-plot.sh sets these:
#
#   rates   a file: threads, and a column of spans a second for each design
#   about   a line of text below the title
#   image   what to write

set terminal svg size 960,460 dynamic enhanced font "sans,13" background "#ffffff"
load "benchmarks/plot/processor-style.gp"
set multiplot title "How many spans does the exporter thread get when threads end them at full speed?\n{/*0.8 ".about."}"
set tmargin 4
set lmargin at screen 0.09
set rmargin at screen 0.64
set key at screen 0.66, screen 0.52 center left reverse Left samplen 2
set ylabel "million spans exported a second"
set format y "%g"
set xrange [0.9:22]
plot for [i=2:11] rates using 1:(column(i)/1e6) with linespoints lt (i - 1) title columnheader(i)
unset multiplot
