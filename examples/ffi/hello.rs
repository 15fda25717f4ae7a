// SPDX-License-Identifier: Apache-2.0
// examples/ffi/hello.rs - examples/hello.c in Rust, with extern "C".
//
//     rustc hello.rs -o hello-rs $(pkg-config --libs-only-L otel)
//     OTEL_TRACES_EXPORTER=console ./hello-rs
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null;

type Handle = [u64; 4]; // otel_span

#[link(name = "otel")]
#[link(name = "otel-sdk")]
#[link(name = "otel-api")]
extern "C" {
    fn otel_start(options: *const c_void) -> c_int;
    fn otel_shutdown(timeout_ms: i64) -> c_int;
    fn otel_status_string(status: c_int) -> *const c_char;
    fn otel_tracer_get_p(name: *const u8, name_length: usize, version: *const u8,
                         version_length: usize, options: *const c_void) -> *mut c_void;
    fn otel_span_enter_p(span: *mut Handle, tracer: *mut c_void, name: *const u8,
                         name_length: usize, options: *const c_void);
    fn otel_span_end_p(span: *const Handle, end_ns: u64);
    fn otel_span_set_int_p(span: *const Handle, key: *const u8, key_length: usize, value: i64);
    fn otel_span_fail_p(span: *const Handle, description: *const u8, length: usize);
}

/// A span that is current on its thread, does not leave it, and ends when it is dropped.
struct ScopedSpan(Handle, PhantomData<*const ()>);

impl ScopedSpan {
    fn new(tracer: *mut c_void, name: &str) -> Self {
        let mut span = ScopedSpan([0; 4], PhantomData);
        unsafe { otel_span_enter_p(&mut span.0, tracer, name.as_ptr(), name.len(), null()) };
        span
    }
    fn set_int(&self, key: &str, value: i64) {
        unsafe { otel_span_set_int_p(&self.0, key.as_ptr(), key.len(), value) };
    }
    fn fail(&self, description: &str) {
        unsafe { otel_span_fail_p(&self.0, description.as_ptr(), description.len()) };
    }
}

impl Drop for ScopedSpan {
    fn drop(&mut self) {
        unsafe { otel_span_end_p(&self.0, 0) };
    }
}

fn charge(tracer: *mut c_void, cents: i64) -> i32 {
    let span = ScopedSpan::new(tracer, "charge"); // ends on every way out
    span.set_int("payment.cents", cents);
    if cents <= 0 {
        span.fail("nothing to charge");
        return -1;
    }
    0
}

fn main() {
    let status = unsafe { otel_start(null()) }; // everything from OTEL_*
    if status != 0 {
        let why = unsafe { CStr::from_ptr(otel_status_string(status)) };
        eprintln!("telemetry is off: {}", why.to_string_lossy());
    }
    let (name, version) = ("example.shop", "1.0");
    let tracer = unsafe {
        otel_tracer_get_p(name.as_ptr(), name.len(), version.as_ptr(), version.len(), null())
    };
    charge(tracer, 1299);
    if unsafe { otel_shutdown(5000 /* ms */) } != 0 { // sends what is left
        eprintln!("not all spans were delivered");
    }
}
