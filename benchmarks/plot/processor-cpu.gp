# SPDX-License-Identifier: Apache-2.0
#
# Draws of `processor`: what the exporter thread costs when each thread ends 10,000 spans a
# second, and how often it is woken for that. scripts/bench-plot.sh sets these:
#
#   cpu      a file: threads, and a column of percents of a core for each design
#   wakeups  the same of wake-ups a second
#   about    a line of text below the title
#   image    what to write

set terminal svg size 1160,470 dynamic enhanced font "sans,13" background "#ffffff"
load "benchmarks/plot/processor-style.gp"
set multiplot title "What does the exporter thread cost at 10,000 spans a second and thread?\n{/*0.8 ".about."}"
set xrange [0.9:22]
set tmargin 5
set bmargin 4
set format y "%g"

set lmargin at screen 0.06
set rmargin at screen 0.345
set title "its CPU time, percent of a core" font ",12" offset 0,-0.5
unset key
plot for [i=2:11] cpu using 1:(column(i) > 0 ? column(i) : NaN) with linespoints lt (i - 1) \
         title columnheader(i)

set lmargin at screen 0.42
set rmargin at screen 0.705
set title "its wake-ups a second" font ",12"
set key at screen 0.725, screen 0.55 center left reverse Left samplen 2
plot for [i=2:11] wakeups using 1:(column(i) > 0 ? column(i) : NaN) with linespoints lt (i - 1) \
         title columnheader(i)
unset multiplot
