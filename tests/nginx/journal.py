# SPDX-License-Identifier: Apache-2.0
"""A receiver of OTLP/HTTP that may be killed at any time, for storm.py.

    journal.py PORT FOLDER

What comes is in FOLDER/spans before it is acknowledged, one line for each span:

    TRACE J SPAN PARENT KIND SERVICE BATCH

PARENT is - for a root; BATCH is that of FOLDER/acknowledged, which has a line for each answer that has been
sent. Each group of lines is one write, so a killed receiver leaves no half ones.
"""
import gzip
import http.server
import itertools
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))
import harness

KINDS = {2: "server", 3: "client"}


def lines_of(message, batch):
    for group in message.resource_spans:
        service = harness.attributes(group.resource)["service.name"]
        for scope in group.scope_spans:
            for span in scope.spans:
                yield (f"{span.trace_id.hex()} J {span.span_id.hex()} {span.parent_span_id.hex() or '-'} "
                       f"{KINDS.get(span.kind, span.kind)} {service} {batch}\n")


class Journal:
    def __init__(self, folder, name):
        self.file = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, text):
        text = text.encode()
        if os.write(self.file, text) != len(text):
            os.abort()  # the disk is full


def main():
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    spans, acknowledged = Journal(folder, "spans"), Journal(folder, "acknowledged")
    numbers = itertools.count()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            message = harness.service.ExportTraceServiceRequest()
            message.ParseFromString(body)
            batch = f"{os.getpid()}-{next(numbers)}"
            spans.add("".join(lines_of(message, batch)))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()
            acknowledged.add(f"{batch}\n")

    with harness.Server(Handler, port):
        time.sleep(1e9)


if __name__ == "__main__":
    main()
