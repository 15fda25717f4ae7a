// SPDX-License-Identifier: Apache-2.0

// examples/ffi/hello.go - examples/hello.c in Go, with cgo.
//
//	go build -o hello-go hello.go
//	OTEL_TRACES_EXPORTER=console ./hello-go
//
// An entered span belongs to its thread, and goroutines change threads: so spans here are started
// and not entered, and a child is told its parent (otel_span_options.parent).
package main

/*
#cgo pkg-config: otel
#include <otel/ffi.h>
#include <otel/otel.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

type Span struct{ handle C.otel_span }

// The bytes of a string for a call, which copies them.
func text(s string) (*C.char, C.size_t) {
	bytes := append([]byte(s), 0)
	return (*C.char)(unsafe.Pointer(&bytes[0])), C.size_t(len(s))
}

func Start(tracer *C.otel_tracer, name string) *Span {
	span := new(Span)
	data, length := text(name)
	C.otel_span_start_p(&span.handle, tracer, data, length, nil)
	return span
}

func (span *Span) SetInt(key string, value int64) {
	data, length := text(key)
	C.otel_span_set_int_p(&span.handle, data, length, C.int64_t(value))
}

func (span *Span) Fail(description string) {
	data, length := text(description)
	C.otel_span_fail_p(&span.handle, data, length)
}

func (span *Span) End() { C.otel_span_end_p(&span.handle, 0) }

func charge(tracer *C.otel_tracer, cents int64) int {
	span := Start(tracer, "charge")
	defer span.End() // on every way out
	span.SetInt("payment.cents", cents)
	if cents <= 0 {
		span.Fail("nothing to charge")
		return -1
	}
	return 0
}

func main() {
	if status := C.otel_start(nil); status != C.OTEL_OK { // everything from OTEL_*
		fmt.Fprintln(os.Stderr, "telemetry is off:", C.GoString(C.otel_status_string(status)))
	}
	name, nameLength := text("example.shop")
	version, versionLength := text("1.0")
	charge(C.otel_tracer_get_p(name, nameLength, version, versionLength, nil), 1299)
	if C.otel_shutdown(5000 /* ms */) != C.OTEL_OK { // sends what is left
		fmt.Fprintln(os.Stderr, "not all spans were delivered")
	}
}
