# SPDX-License-Identifier: Apache-2.0
#
# Draws of `processor`: how long it takes to end a span, on the thread that does, when each
# thread ends 10,000 a second. scripts/bench-plot.sh sets these:
#
#   p999     a file: threads, and a column of microseconds for each design
#   longest  the same of the longest
#   about    a line of text below the title
#   image    what to write

set terminal svg size 1160,470 dynamic enhanced font "sans,13" background "#ffffff"
load "benchmarks/plot/processor-style.gp"
set multiplot title "How long does a program wait for the end of a span, at 10,000 a second and thread?\n{/*0.8 ".about."}"
set xrange [0.9:22]
set tmargin 5
set bmargin 4
set format y "%g"

set lmargin at screen 0.06
set rmargin at screen 0.345
set title "999 of 1,000 take no longer than, µs" font ",12" offset 0,-0.5
unset key
plot for [i=2:12] p999 using 1:i with linespoints lt (i - 1) title columnheader(i)

set lmargin at screen 0.42
set rmargin at screen 0.705
set title "the longest of about a second, µs" font ",12"
set key at screen 0.725, screen 0.55 center left reverse Left samplen 2
plot for [i=2:12] longest using 1:i with linespoints lt (i - 1) title columnheader(i)
unset multiplot
