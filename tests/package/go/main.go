// SPDX-License-Identifier: Apache-2.0

// A program in Go that uses otel-c by way of cgo and pkg-config.
package main

/*
#cgo pkg-config: otel
#include <otel/otel.h>
*/
import "C"

import "os"

func main() {
    if C.otel_start(nil) != C.OTEL_OK || C.otel_shutdown(60000) != C.OTEL_OK {
        os.Exit(1)
    }
}
