# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's Python SDK as a neighbour. Says its port, and serves until stdin ends:

    /send?to=URL&trace=&span=&sampled=&tracestate=&baggage=    asks URL as a client in this context,
                                                               and answers with what that answers
    /anything else                                             answers with what it sees of its client

The propagators are those of OTEL_PROPAGATORS, which the SDK reads itself; baggage is JSON."""
import http.server
import json
import sys
import threading
import urllib.parse
import urllib.request

from opentelemetry import baggage, propagate, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

tracer = TracerProvider().get_tracer("peer")
ratio = TraceIdRatioBased(0.3)


def see(headers):
    carrier = {}
    for name, value in headers.items():
        carrier.setdefault(name.lower(), []).append(value)
    context = propagate.extract(carrier, Context())
    span = trace.get_current_span(context).get_span_context()
    child = tracer.start_span("peer", context)
    return {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}", "sampled": child.is_recording(),
            "tracestate": span.trace_state.to_header(),
            # It takes metadata for a part of the value.
            "baggage": {name: value.partition(";")[0] for name, value in baggage.get_all(context).items()},
            "ratio": ratio.should_sample(None, span.trace_id, "").decision is Decision.RECORD_AND_SAMPLE}


def send(query):
    span = trace.SpanContext(int(query["trace"], 16), int(query["span"], 16), False,
                             trace.TraceFlags(int(query["sampled"])),
                             trace.TraceState.from_header([query["tracestate"]]))
    context = trace.set_span_in_context(trace.NonRecordingSpan(span), Context())
    for name, value in json.loads(query["baggage"]).items():
        context = baggage.set_baggage(name, value, context)
    headers = {}
    propagate.inject(headers, context)
    with urllib.request.urlopen(urllib.request.Request(query["to"], headers=headers), timeout=60) as answer:
        return json.load(answer)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
            answer = send(query) if url.path == "/send" else see(self.headers)
        except Exception as bad:
            answer = {"fault": repr(bad)}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
