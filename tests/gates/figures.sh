#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The figures that README gives are those of docs/PERFORMANCE.md and docs/RELIABILITY.md.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

count=0

# cell FILE ROW COLUMN: of the first table in FILE with such a row; a row is known by its first cell.
cell() {
    awk -F ' *[|] *' -v row="$2" -v column="$3" '
        $2 == row { value = $(column + 2); gsub(/[*,]/, "", value); print value; exit }' "$1"
}

# rounded NUMBER DECIMALS [DIVISOR]: halves upwards, as people do.
rounded() {
    awk -v value="$1" -v decimals="$2" -v divisor="${3:-1}" 'BEGIN {
        scale = 10 ^ decimals
        printf "%.*f", decimals, int(value / divisor * scale + 0.5 + 1e-9) / scale }'
}

# says TEXT: README has it, whatever the line breaks.
says() {
    count=$((count + 1))
    [[ $readme == *"$1"* ]] || wrong "README.md:1: does not say \"$1\""
}

# case_of ROW DECIMALS: sets least and median to what the tables of PERFORMANCE say of it.
case_of() {
    least=$(rounded "$(cell docs/PERFORMANCE.md "\`$1\`" 1)" "$2")
    median=$(rounded "$(cell docs/PERFORMANCE.md "\`$1\`" 2)" "$2")
}

readme=$(tr -s '\n ' '  ' <README.md)

case_of two_tsc_reads 0
says "$least ns of that are reading the clock twice"
says "processor's counter twice: $least ns here"
case_of enter_end 0
says "**A span takes $least ns**"
says "| enter and end a span, no allocation | $least ns | $median ns |"
case_of enter_end_5attr 0
says "$least ns with five attributes"
says "| the same with 5 attributes, no allocation | $least ns | $median ns |"
case_of unsampled_5attr 1
says "| the same, not sampled | $least ns | $median ns |"
case_of no_sdk 1
says "a span takes $least ns"
says "| enter and end a span without an SDK | $least ns | $median ns |"
case_of drain_encode_5attr 0
says "from the ring to the bytes of a request | $least ns | $median ns |"
case_of protobuf_c_5attr 0
says "| protobuf-c for the encoding alone | $least ns | $median ns |"

rate=$(rounded "$(cell docs/PERFORMANCE.md "spans a second" 1)" 1 1000000)
usual=$(rounded "$(cell docs/PERFORMANCE.md "spans a second" 2)" 1 1000000)
says "none dropped: spans a second | $rate million | $usual million |"
says "**${rate%.0} million spans a second**"
least=$(rounded "$(cell docs/PERFORMANCE.md "CPU µs a span, all threads" 1)" 2)
median=$(rounded "$(cell docs/PERFORMANCE.md "CPU µs a span, all threads" 2)" 2)
says "at $least µs of processor time each"
says "MiB of memory) | $least µs | $median µs |"

loss=$(cell docs/PERFORMANCE.md "**throughput, traced and exported**, server on a core of its own" 1)
says "loses $loss % of its throughput"
says "**A server loses $(rounded "$loss" 0) % of its throughput**"

soak=$(grep -F 'soak_stress --seconds 7200 --failures 200` | ' docs/RELIABILITY.md)
spans=$(sed -nE 's/.*two hours, ([0-9,]+) spans.*/\1/p' <<<"$soak")
says "$(rounded "${spans//,/}" 0 1000000) million are accounted for"
says "$(sed -nE 's/.*, ([0-9]+) failures of the receiver.*/failed \1 times/p' <<<"$soak")"
says "$(sed -nE 's/.*at most ([0-9]+ MiB).*/with \1 of memory at most/p' <<<"$soak")"

finish "$count figures"
