// SPDX-License-Identifier: Apache-2.0

// What the Go SDK's TraceIDRatioBased decides: each line of standard input is a ratio and a trace
// id, and is answered with "+" or "-". sampling.py builds and asks it.
package main

import (
	"bufio"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var ratio float64
		var hex string
		if _, err := fmt.Sscan(lines.Text(), &ratio, &hex); err != nil {
			panic(err)
		}
		id, err := api.TraceIDFromHex(hex)
		if err != nil {
			panic(err)
		}
		result := trace.TraceIDRatioBased(ratio).ShouldSample(trace.SamplingParameters{TraceID: id})
		if result.Decision == trace.RecordAndSample {
			fmt.Fprintln(out, "+")
		} else {
			fmt.Fprintln(out, "-")
		}
	}
}
