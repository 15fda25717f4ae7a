-- SPDX-License-Identifier: Apache-2.0
-- examples/ffi/hello.lua - examples/hello.c in Lua, with LuaJIT's ffi.
--
--     OTEL_TRACES_EXPORTER=console luajit hello.lua
--
-- OTEL_C_LIBRARY says where libotel.so is if the linker does not find it.
local ffi = require("ffi")
ffi.cdef [[
typedef struct { uint64_t opaque[4]; } otel_span;
typedef struct otel_tracer otel_tracer;
int otel_start(const void *options);
int otel_shutdown(int64_t timeout_ms);
const char *otel_status_string(int status);
otel_tracer *otel_tracer_get_p(const char *name, size_t name_length, const char *version,
                               size_t version_length, const void *options);
void otel_span_enter_p(otel_span *span, otel_tracer *tracer, const char *name, size_t name_length,
                       const void *options);
void otel_span_end_p(const otel_span *span, uint64_t end_ns);
void otel_span_set_int_p(const otel_span *span, const char *key, size_t key_length, int64_t value);
void otel_span_fail_p(const otel_span *span, const char *description, size_t length);
]]
local otel = ffi.load(os.getenv("OTEL_C_LIBRARY") or "libotel.so")

-- Call work(span, ...) in a span, which ends on every way out.
local function in_span(tracer, name, work, ...)
  local span = ffi.new("otel_span")
  otel.otel_span_enter_p(span, tracer, name, #name, nil)
  local ok, result = pcall(work, span, ...)
  otel.otel_span_end_p(span, 0)
  if not ok then error(result, 0) end
  return result
end

local function charge(span, cents)
  otel.otel_span_set_int_p(span, "payment.cents", #"payment.cents", cents)
  if cents <= 0 then
    otel.otel_span_fail_p(span, "nothing to charge", #"nothing to charge")
    return -1
  end
  return 0
end

local status = otel.otel_start(nil) -- everything from OTEL_*
if status ~= 0 then
  io.stderr:write("telemetry is off: ", ffi.string(otel.otel_status_string(status)), "\n")
end
local tracer = otel.otel_tracer_get_p("example.shop", 12, "1.0", 3, nil)
in_span(tracer, "charge", charge, 1299)
if otel.otel_shutdown(5000) ~= 0 then -- ms; sends what is left
  io.stderr:write("not all spans were delivered\n")
end
