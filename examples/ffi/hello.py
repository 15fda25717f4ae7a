# SPDX-License-Identifier: Apache-2.0
"""examples/ffi/hello.py - examples/hello.c in Python, with ctypes.

    OTEL_TRACES_EXPORTER=console python3 hello.py

OTEL_C_LIBRARY says where libotel.so is if the linker does not find it.
"""
import contextlib
import ctypes
import os
import sys

otel = ctypes.CDLL(os.environ.get("OTEL_C_LIBRARY", "libotel.so"))
Span = ctypes.c_uint64 * 4  # otel_span
text, size, span_at = ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Span)


def function(name, *arguments, returns=None):
    function = getattr(otel, name)
    function.argtypes, function.restype = arguments, returns
    return function


start = function("otel_start", ctypes.c_void_p, returns=ctypes.c_int)
shutdown = function("otel_shutdown", ctypes.c_int64, returns=ctypes.c_int)
status_string = function("otel_status_string", ctypes.c_int, returns=text)
tracer_get = function("otel_tracer_get_p", text, size, text, size, ctypes.c_void_p,
                      returns=ctypes.c_void_p)
span_enter = function("otel_span_enter_p", span_at, ctypes.c_void_p, text, size, ctypes.c_void_p)
span_end = function("otel_span_end_p", span_at, ctypes.c_uint64)
span_set_int = function("otel_span_set_int_p", span_at, text, size, ctypes.c_int64)
span_fail = function("otel_span_fail_p", span_at, text, size)


def sized(string):
    data = string.encode()
    return data, len(data)


@contextlib.contextmanager
def scoped_span(tracer, name):
    span = Span()
    span_enter(span, tracer, *sized(name), None)
    try:
        yield span
    finally:
        span_end(span, 0)


def charge(cents):
    with scoped_span(tracer, "charge") as span:  # ends on every way out
        span_set_int(span, *sized("payment.cents"), cents)
        if cents <= 0:
            span_fail(span, *sized("nothing to charge"))
            return -1
        return 0


status = start(None)  # everything from OTEL_*
if status != 0:
    print("telemetry is off:", status_string(status).decode(), file=sys.stderr)
tracer = tracer_get(*sized("example.shop"), *sized("1.0"), None)
charge(1299)
if shutdown(5000) != 0:  # ms; sends what is left
    print("not all spans were delivered", file=sys.stderr)
