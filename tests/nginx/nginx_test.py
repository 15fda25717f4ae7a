#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The module for nginx, in a real nginx, between a client, an upstream and a receiver of this test.

    nginx_test.py BUILD [SANITIZERS]      the module is built in BUILD/nginx, with the shared libraries of BUILD

It needs nginx, its headers (nginx-dev) and curl with HTTP/2.
"""
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build-dev")
os.environ.setdefault("BLACKBOX_PROGRAMS", str(BUILD))
import scene  # which finds harness
import harness
from harness import Receiver, attributes

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


def traceparent_of(span):
    return f"00-{span.trace_id.hex()}-{span.span_id.hex()}-{span.flags & 255:02x}"


class Case(harness.Case):
    def start(self, server, http="", **more):
        nginx = scene.Nginx(more.pop("endpoint", self.receiver.endpoint), server, http, **more)
        return self.enterContext(nginx)

    def setUp(self):
        self.maxDiff = None
        self.receiver = self.enterContext(Receiver())
        self.upstream = self.enterContext(scene.Upstream())
        self.to = f"proxy_pass http://127.0.0.1:{self.upstream.port}"

    def span(self, kind, service="front"):
        """The only span of a kind."""
        [found] = [span for name, span in scene.spans_of(self.receiver)
                   if name == service and scene.KINDS[span.kind] == kind]
        return found

    def check_tree(self, *lines):
        self.assertEqual(scene.tree(self.receiver), "\n".join(lines))
        self.assertEqual(self.receiver.faults, [])
        spans = scene.spans_of(self.receiver)
        known = {(service, span.span_id): span for service, span in spans}
        self.assertEqual(len(known), len(spans))
        for service, span in spans:
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
            above = known.get((service, span.parent_span_id), span)
            self.assertLessEqual(above.start_time_unix_nano, span.start_time_unix_nano)
            self.assertLessEqual(span.end_time_unix_nano, above.end_time_unix_nano)

    def check_sums(self, sums, **known):
        """What is known of the sums of all workers, which add up."""
        total = {}
        for each in sums:
            self.assertEqual(each["started"], each["unsampled"] + each["open"] + each["ended"], each)
            for name, number in each.items():
                total[name] = total.get(name, 0) + number
        lost = total.get("dropped", 0) + total.get("withheld", 0)
        self.assertEqual(total["ended"], total["delivered"] + lost, total)
        self.assertEqual({name: total.get(name, 0) for name in known}, known)


class Trees(Case):
    def test_a_request_through_two_servers_is_one_tree(self):
        back = self.start("location /items/ { return 200 back; }", service="back")
        front = self.start(f"location /shop/ {{ proxy_pass http://127.0.0.1:{back.port}/items/; }}")
        self.assertEqual(front.request("/shop/7?full=1&sig=secret", headers=TRACEPARENT), (200, "back"))
        self.check_sums(front.quit(), started=2, delivered=2)
        self.check_sums(back.quit(), started=1, delivered=1)
        self.check_tree("front server GET /shop/ 200",
                        "  front client GET 200",
                        "    back server GET /items/ 200")
        root = self.span("server")
        self.assertEqual((root.trace_id.hex(), root.parent_span_id.hex()), (TRACE, PARENT))
        held = attributes(root)
        self.assertGreater(held.pop("network.peer.port"), 0)
        self.assertEqual(held, {
            "http.request.method": "GET", "url.scheme": "http", "url.path": "/shop/7",
            "url.query": "full=1&sig=REDACTED", "server.address": "127.0.0.1", "server.port": front.port,
            "client.address": "127.0.0.1", "network.peer.address": "127.0.0.1", "network.protocol.version": "1.1",
            "http.route": "/shop/", "http.response.status_code": 200})
        self.assertEqual(attributes(self.span("client")), {
            "http.request.method": "GET", "url.full": f"http://127.0.0.1:{back.port}/items/7",
            "server.address": "127.0.0.1", "server.port": back.port, "network.peer.address": "127.0.0.1",
            "network.peer.port": back.port, "http.response.status_code": 200})

    def test_a_retry_is_an_event_and_a_count(self):
        dead = scene.free_port()
        other = self.enterContext(scene.Upstream())
        nginx = self.start(
            "location / { proxy_pass http://shop; proxy_next_upstream error http_503; }",
            f"upstream shop {{ server 127.0.0.1:{dead}; server 127.0.0.1:{other.port} backup; }}")
        self.assertEqual(nginx.request("/a")[0], 200)
        self.check_sums(nginx.quit(), delivered=2)
        self.check_tree("front server GET / 200", "  front client GET 200")
        span = self.span("client")
        held = attributes(span)
        self.assertEqual(held["http.request.resend_count"], 1)
        self.assertEqual((held["url.full"], held["server.address"], held["network.peer.port"]),
                         ("http://shop/a", "shop", other.port))
        [event] = span.events
        self.assertEqual(event.name, "upstream.retry")
        self.assertEqual(attributes(event), {"network.peer.address": "127.0.0.1", "network.peer.port": dead,
                                             "error.type": "connect_error"})
        self.assertEqual(other.of("/a").get_all("traceparent"),
                         [traceparent_of(span)])

    def test_a_status_that_was_tried_again_is_in_its_event(self):
        other = self.enterContext(scene.Upstream())
        nginx = self.start(
            "location / { proxy_pass http://shop; proxy_next_upstream http_503; }",
            f"upstream shop {{ server 127.0.0.1:{self.upstream.port}; server 127.0.0.1:{other.port} backup; }}")
        self.assertEqual(nginx.request("/status/503")[0], 503)
        nginx.quit()
        self.check_tree("front server GET / 503 error.type=503 error", "  front client GET 503 error.type=503 error")
        [event] = self.span("client").events
        self.assertEqual(attributes(event), {"network.peer.address": "127.0.0.1", "http.response.status_code": 503,
                                             "network.peer.port": self.upstream.port})

    def test_no_upstream_is_an_error_of_both(self):
        nginx = self.start(f"location / {{ proxy_pass http://127.0.0.1:{scene.free_port()}; }}")
        self.assertEqual(nginx.request("/")[0], 502)
        self.check_sums(nginx.quit(), delivered=2)
        self.check_tree("front server GET / 502 error.type=502 error",
                        "  front client GET - error.type=connect_error error")

    def test_an_upstream_that_hangs_up_has_not_answered(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        self.assertEqual(nginx.request("/drop")[0], 502)
        nginx.quit()
        self.check_tree("front server GET / 502 error.type=502 error",
                        "  front client GET - error.type=response_error error")

    def test_an_answer_that_breaks_off_is_an_error(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        with self.assertRaises(http.client.IncompleteRead):
            nginx.request("/short")
        nginx.quit()
        self.check_tree("front server GET / 200", "  front client GET 200 error.type=response_error error")

    def test_an_upstream_that_is_too_slow_is_a_timeout(self):
        nginx = self.start(f"location / {{ {self.to}; proxy_read_timeout 100ms; }}")
        self.assertEqual(nginx.request("/hang")[0], 504)
        nginx.quit()
        self.check_tree("front server GET / 504 error.type=504 error",
                        "  front client GET - error.type=timeout error")

    def test_an_upstream_without_a_live_server_is_no_attempt(self):
        nginx = self.start("location / { proxy_pass http://shop; }",
                           "upstream shop { server 127.0.0.1:1 down; server 127.0.0.1:2 down; }")
        self.assertEqual(nginx.request("/")[0], 502)
        nginx.quit()
        self.check_tree("front server GET / 502 error.type=502 error",
                        "  front client GET - error.type=no_upstream error")
        self.assertEqual(attributes(self.span("client")), {
            "http.request.method": "GET", "url.full": "http://shop/", "server.address": "shop",
            "error.type": "no_upstream"})

    def test_a_client_that_goes_is_no_error(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        nginx.say(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n",
                  lambda: scene.wait_for(lambda: self.upstream.heard, "the upstream's request"))
        self.check_sums(nginx.quit(), delivered=2, open=0)
        self.check_tree("front server GET / 499", "  front client GET -")

    def test_the_status_is_that_of_the_access_log(self):
        nginx = self.start(f"""access_log access.log status;
            location / {{ proxy_pass http://127.0.0.1:{scene.free_port()}; error_page 502 /spare; }}
            location /spare {{ {self.to}/hang; }}""", "log_format status '$status';")
        nginx.say(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
                  lambda: scene.wait_for(lambda: self.upstream.heard, "the upstream's request"))
        nginx.quit()
        self.assertEqual(nginx.log("access.log"), "502\n")
        self.check_tree("front server GET / 502 error.type=502 error",
                        "  front client GET - error.type=connect_error error",
                        "  front client GET -")

    def test_a_body_that_comes_later_changes_nothing(self):
        nginx = self.start(f"location / {{ {self.to}; client_body_buffer_size 1k; }}")
        self.assertEqual(nginx.request("/a", "POST", iter([b"x" * 500, b"y" * 5000]))[0], 200)
        nginx.quit()
        self.check_tree("front server POST / 200", "  front client POST 200")
        self.assertEqual(self.upstream.of("/a").get_all("traceparent"), [traceparent_of(self.span("client"))])

    def test_https_is_its_scheme(self):
        with tempfile.TemporaryDirectory() as folder:
            harness.certificates(folder)
            port = scene.free_port()
            nginx = self.start(f"""listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/server.pem;
                ssl_certificate_key {folder}/server.key; location / {{ return 200; }}""")
            subprocess.run(["curl", "-sS", "--cacert", f"{folder}/ca.pem", f"https://localhost:{port}/"], check=True,
                           timeout=scene.SECONDS)
            nginx.quit()
        held = attributes(self.span("server"))
        self.assertEqual((held["url.scheme"], held["server.address"], held["server.port"]), ("https", "localhost", port))

    def test_return_has_a_span_in_a_location_and_in_a_server(self):
        nginx = self.start("location / { return 404; }")
        self.assertEqual(nginx.request("/")[0], 404)
        nginx.quit()
        other = self.start("return 204;", service="other")
        self.assertEqual(other.request("/a", headers=TRACEPARENT)[0], 204)
        other.quit()
        self.check_tree("front server GET / 404", "other server GET 204")

    def test_a_malformed_request_has_a_span(self):
        nginx = self.start("location / { return 200; }")
        self.assertIn(b" 400 ", nginx.say(b"\x16\x03\x01 hello\r\n\r\n"))
        self.check_sums(nginx.quit(), delivered=1)
        self.check_tree("front server HTTP 400")

    def test_a_file_and_other_content_have_no_call(self):
        nginx = self.start("root .; location /status { stub_status; }")
        self.assertEqual(nginx.request("/nginx.conf")[0], 200)
        self.assertEqual(nginx.request("/status")[0], 200)
        self.check_sums(nginx.quit(), delivered=2, withheld=1)
        self.check_tree("front server GET 200", "front server GET /status 200")


class Protocols(Case):
    def test_fastcgi_has_a_call_and_the_context(self):
        to = self.enterContext(scene.FastCgi())
        nginx = self.start(f"location / {{ fastcgi_pass 127.0.0.1:{to.port}; fastcgi_param SCRIPT_NAME $uri; }}")
        headers = dict(TRACEPARENT, baggage="user=7")
        self.assertEqual(nginx.request("/a?b=1", headers=headers), (200, "ok\n"))
        self.check_sums(nginx.quit(), delivered=2)
        self.check_tree("front server GET / 200", "  front client GET 200")
        [heard] = to.heard
        span = self.span("client")
        self.assertEqual((heard["HTTP_TRACEPARENT"], heard["HTTP_BAGGAGE"]), (traceparent_of(span), "user=7"))
        self.assertEqual(attributes(span), {
            "http.request.method": "GET", "url.full": f"fastcgi://127.0.0.1:{to.port}/a",
            "server.address": "127.0.0.1", "server.port": to.port, "network.peer.address": "127.0.0.1",
            "network.peer.port": to.port, "http.response.status_code": 200})

    def test_grpc_pass_has_a_call_and_the_context(self):
        back = self.start("location / { return 200 back; }", service="back")
        nginx = self.start(f"location / {{ grpc_pass grpc://127.0.0.1:{back.port2}; }}")
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge",
                               f"http://127.0.0.1:{nginx.port2}/shop.Shop/Buy"],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=scene.SECONDS)
        self.assertEqual(done.stdout, "back")
        nginx.quit()
        back.quit()
        self.check_tree("front server GET / 200", "  front client GET 200", "    back server GET / 200")
        self.assertEqual(attributes(self.span("client"))["url.full"],
                         f"grpc://127.0.0.1:{back.port2}/shop.Shop/Buy")

    def test_slices_are_calls_of_their_own(self):
        back = self.start("root .;", service="back")
        (back.path / "file").write_text(3000 * "x")
        nginx = self.start(f"location / {{ slice 1k; proxy_set_header Range $slice_range; "
                           f"proxy_pass http://127.0.0.1:{back.port}; }}")
        self.assertEqual(nginx.request("/file"), (200, 3000 * "x"))
        self.check_sums(nginx.quit(), delivered=4)
        back.quit()
        self.check_tree("front server GET / 200",
                        *3 * ["  front client GET 206", "    back server GET 206"])


class Redirects(Case):
    def test_an_error_page_keeps_the_span(self):
        nginx = self.start(f"""
            location / {{ proxy_pass http://127.0.0.1:{scene.free_port()}; error_page 502 = /spare; }}
            location /spare {{ {self.to}; }}""")
        self.assertEqual(nginx.request("/a", headers=TRACEPARENT)[0], 200)
        self.check_sums(nginx.quit(), delivered=3)
        self.check_tree("front server GET / 200",
                        "  front client GET - error.type=connect_error error",
                        "  front client GET 200")
        [headers] = self.upstream.of("/spare").get_all("traceparent")
        last = max((span for _, span in scene.spans_of(self.receiver)), key=lambda span: span.start_time_unix_nano)
        self.assertEqual(headers, f"00-{TRACE}-{last.span_id.hex()}-01")

    def test_an_error_page_may_come_before_the_first_call_has_returned(self):
        nginx = self.start(f"""
            location / {{ proxy_pass http://shop; error_page 502 = /spare; }}
            location /spare {{ {self.to}; }}""", "upstream shop { server 127.0.0.1:1 down; server 127.0.0.1:2 down; }")
        self.assertEqual(nginx.request("/a")[0], 200)
        self.check_sums(nginx.quit(), delivered=3)
        self.check_tree("front server GET / 200",
                        "  front client GET - error.type=no_upstream error",
                        "  front client GET 200")

    def test_a_named_location_keeps_the_span(self):
        nginx = self.start(f"root .; location / {{ try_files $uri @app; }} location @app {{ {self.to}; }}")
        self.assertEqual(nginx.request("/a")[0], 200)
        nginx.quit()
        self.check_tree("front server GET / 200", "  front client GET 200")

    def test_a_redirect_by_the_upstream_keeps_the_span(self):
        nginx = self.start(f"location / {{ {self.to}; }} location /internal/ {{ internal; {self.to}; }}")
        self.assertEqual(nginx.request("/accel")[0], 200)
        nginx.quit()
        self.check_tree("front server GET / 200", "  front client GET 200", "  front client GET 200")

    def test_an_if_block_has_the_content_around_it(self):
        nginx = self.start(f"location / {{ {self.to}; if ($arg_a) {{ set $b 1; }} }}")
        self.assertEqual(nginx.request("/?a=1")[0], 200)
        nginx.quit()
        self.check_tree("front server GET / 200", "  front client GET 200")


class SubRequests(Case):
    def test_they_have_calls_of_their_own_and_leave_the_headers_alone(self):
        nginx = self.start(f"""
            location / {{ auth_request /auth; mirror /copy; {self.to}; }}
            location = /auth {{ internal; {self.to}; }}
            location = /copy {{ internal; {self.to}; }}""")
        headers = dict(TRACEPARENT, baggage="user=7", tracestate="a=b")
        self.assertEqual(nginx.request("/a", headers=headers)[0], 200)
        self.check_sums(nginx.quit(), delivered=4)
        self.check_tree("front server GET / 200", *3 * ["  front client GET 200"])
        sent = [self.upstream.of(path).get_all("traceparent") for path in ("/auth", "/copy", "/a")]
        calls = [[f"00-{TRACE}-{span.span_id.hex()}-01"] for _, span in scene.spans_of(self.receiver)
                 if scene.KINDS[span.kind] == "client"]
        self.assertEqual(sorted(sent), sorted(calls))
        for path in "/auth", "/copy", "/a":
            self.assertEqual(self.upstream.of(path).get_all("baggage"), ["user=7"])
            self.assertEqual(self.upstream.of(path).get_all("tracestate"), ["a=b"])

    def test_included_pieces_are_below_the_page(self):
        nginx = self.start(f"root .; location / {{ ssi on; }} location /piece/ {{ {self.to}; }}")
        (nginx.path / "page.html").write_text(
            '<!--#include virtual="/piece/1" --><!--#include virtual="/piece/2" -->')
        self.assertEqual(nginx.request("/page.html"), (200, "ok\nok\n"))
        nginx.quit()
        self.check_tree("front server GET / 200", *2 * ["  front client GET 200"])


class Choices(Case):
    def test_a_location_that_is_off_is_as_without_the_module(self):
        nginx = self.start(f"location / {{ otel_trace off; {self.to}; }}")
        self.assertEqual(nginx.request("/a", headers=TRACEPARENT)[0], 200)
        self.check_sums(nginx.quit(), started=0)
        self.check_tree("")
        self.assertEqual(self.upstream.of("/a").get_all("traceparent"), [TRACEPARENT["traceparent"]])

    def test_a_variable_decides_what_is_sampled(self):
        nginx = self.start(f"location / {{ otel_sample $arg_sample; {self.to}; }}")
        for value in "0", "", "on":
            self.assertEqual(nginx.request(f"/a?sample={value}", headers=TRACEPARENT)[0], 200)
        self.assertEqual(nginx.request("/new?sample=0")[0], 200)
        self.check_sums(nginx.quit(), delivered=2)
        self.check_tree("front server GET / 200", "  front client GET 200")
        for value, flags in ("0", "00"), ("", "00"), ("on", "01"):
            [sent] = self.upstream.of(f"/a?sample={value}").get_all("traceparent")
            self.assertRegex(sent, f"^00-{TRACE}-[0-9a-f]{{16}}-{flags}$")
            self.assertNotIn(PARENT, sent)
        self.assertRegex(self.upstream.of("/new?sample=0")["traceparent"], "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[02]$")

    def test_contexts_of_clients_need_not_be_trusted(self):
        nginx = self.start(f"location / {{ otel_trust_context off; {self.to}; }}")
        self.assertEqual(nginx.request("/a", headers=dict(TRACEPARENT, tracestate="a=b", baggage="c=d"))[0], 200)
        nginx.quit()
        span = self.span("client")
        self.assertEqual(self.span("server").parent_span_id, b"")
        headers = self.upstream.of("/a")
        self.assertEqual(headers.get_all("traceparent"), [traceparent_of(span)])
        self.assertEqual((headers["tracestate"], headers["baggage"]), (None, None))

    def test_other_propagators_come_from_a_setting(self):
        nginx = self.start(f"location / {{ {self.to}; }}", main="env OTEL_PROPAGATORS=b3;")
        self.assertEqual(nginx.request("/a", headers={"B3": f"{TRACE}-{PARENT}-1"})[0], 200)
        nginx.quit()
        span = self.span("client")
        self.assertEqual(self.upstream.of("/a").get_all("b3"), [f"{TRACE}-{span.span_id.hex()}-1"])

    def test_headers_of_b3_are_replaced_one_by_one(self):
        nginx = self.start(f"location / {{ {self.to}; }}", main="env OTEL_PROPAGATORS=b3multi;")
        headers = {"X-B3-TraceId": TRACE, "X-B3-SpanId": PARENT, "X-B3-Sampled": "1"}
        self.assertEqual(nginx.request("/a", headers=headers)[0], 200)
        nginx.quit()
        sent = self.upstream.of("/a")
        self.assertEqual([sent.get_all(name) for name in headers],
                         [[TRACE], [self.span("client").span_id.hex()], ["1"]])

    def test_several_baggage_headers_become_one(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        nginx.say(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nbaggage: a=1\r\nBaggage: b=2\r\n\r\n",
                  lambda: scene.wait_for(lambda: self.upstream.heard, "the upstream's request"))
        nginx.quit()
        self.assertEqual(self.upstream.of("/a").get_all("baggage"), ["a=1,b=2"])

    def test_baggage_is_kept_as_long_as_its_request(self):
        nginx = self.start(f"""
            location /a {{ auth_request /auth; {self.to}; }}
            location = /auth {{ internal; {self.to}/wait; }}
            location / {{ return 200; }}""")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            long = "x" * 3000  # of such ones few are there longer than their requests
            slow = pool.submit(nginx.request, "/a", headers={"baggage": f"user={long}"})
            scene.wait_for(lambda: self.upstream.heard, "the sub-request")
            for number in range(1000):
                nginx.request("/", headers={"baggage": f"other{number}={long}"})
            self.upstream.released.set()
            self.assertEqual(slow.result()[0], 200)
        nginx.quit()
        self.assertEqual(self.upstream.of("/a").get_all("baggage"), [f"user={long}"])

    def test_a_context_need_not_be_sent(self):
        nginx = self.start(f'location / {{ {self.to}; proxy_set_header traceparent ""; }}')
        self.assertEqual(nginx.request("/a", headers=TRACEPARENT)[0], 200)
        nginx.quit()
        self.assertEqual(self.upstream.of("/a").get_all("traceparent"), None)

    def test_all_other_headers_go_on_as_they_came(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        many = {f"X-{number}": f"value {number}" for number in range(70)}
        self.assertEqual(nginx.request("/a", headers=dict(TRACEPARENT, **many))[0], 200)
        nginx.quit()
        headers = self.upstream.of("/a")
        self.assertEqual({name: headers.get_all(name) for name in many}, {name: [many[name]] for name in many})

    def test_a_route_can_be_given(self):
        nginx = self.start("location / { otel_route $route; return 200; }", 'map $uri $route { ~^/u/ "/u/{id}"; }')
        nginx.request("/u/7")
        nginx.request("/v")
        nginx.quit()
        self.check_tree("front server GET /u/{id} 200", "front server GET 200")

    def test_the_real_client_is_the_client(self):
        nginx = self.start("set_real_ip_from 127.0.0.1; location / { return 200; }")
        nginx.request("/", headers={"X-Real-IP": "192.0.2.4"})
        nginx.quit()
        self.assertEqual(attributes(self.span("server"))["client.address"], "192.0.2.4")

    def test_an_answer_from_the_cache_has_no_call(self):
        nginx = self.start(f"location / {{ {self.to}; proxy_cache a; proxy_cache_valid 1h; }}",
                           "proxy_cache_path cache keys_zone=a:1m;")
        nginx.request("/a")
        nginx.request("/a")
        self.check_sums(nginx.quit(), delivered=3, withheld=1)
        self.check_tree("front server GET / 200", "  front client GET 200", "front server GET / 200")

    def test_the_access_log_has_the_ids_of_the_span(self):
        nginx = self.start(
            "location / { return 200 $otel_trace_id; access_log access.log ids; } location /off { otel_trace off; "
            "return 200; access_log access.log ids; }",
            "log_format ids '$otel_trace_id $otel_span_id $otel_parent_id $otel_sampled';")
        self.assertEqual(nginx.request("/", headers=TRACEPARENT), (200, TRACE))
        nginx.request("/off")
        nginx.quit()
        span = self.span("server")
        self.assertEqual(nginx.log("access.log"), f"{TRACE} {span.span_id.hex()} {PARENT} 1\n- - - -\n")


class Settings(Case):
    def test_nginx_conf_is_before_the_environment(self):
        for service, line in (("nginx", ""), ("of-environment", "env OTEL_SERVICE_NAME;"),
                              ("of-conf", "env OTEL_SERVICE_NAME=of-conf;")):
            nginx = self.start("location / { return 200; }", main=line, service=None,
                               environment={"OTEL_SERVICE_NAME": "of-environment"})
            nginx.request("/")
            nginx.quit()
            self.assertIn(service, {name for name, _ in scene.spans_of(self.receiver)})

    @unittest.skipUnless(list(BUILD.glob("libotel-config.so*")), "a build without configuration files")
    def test_a_file_has_all_settings(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"""file_format: "1.0"
tracer_provider:
  processors: [{{batch: {{exporter: {{otlp_http: {{endpoint: "{self.receiver.endpoint}/v1/traces"}}}}}}}}]
""")
            file.flush()
            nginx = self.start("location / { return 200; }", main=f"env OTEL_CONFIG_FILE={file.name};", service=None,
                               endpoint="http://127.0.0.1:1")
            nginx.request("/")
            self.assertEqual([threads for _, threads in nginx.workers().values()], [1])
            nginx.quit()
        self.check_tree("nginx server GET / 200")

    def test_messages_are_lines_of_the_error_log(self):
        nginx = self.start("location / { return 200; }", endpoint=f"http://127.0.0.1:{scene.free_port()}",
                           main="env OTEL_BSP_SCHEDULE_DELAY=1; env OTEL_BSP_MAX_QUEUE_SIZE=many;")
        nginx.request("/")
        [worker] = nginx.workers()
        for text in "OTEL_BSP_MAX_QUEUE_SIZE", "export":
            line = re.compile(rf"^\d{{4}}/\d\d/\d\d \d\d:\d\d:\d\d \[error\] {worker}#{worker}: otel-c: .*{text}", re.M)
            scene.wait_for(lambda: line.search(nginx.log()), f"a message with {text}")


class Loops(Case):
    """The worker's event loop exports: what else it does has to go on meanwhile."""

    def check_bursts(self, nginx, before=0):
        """Each is exported before the next, so the descriptor has to be seen every time."""
        for count in range(before + 1, before + 21):
            self.assertEqual(nginx.request("/")[0], 200)
            scene.wait_for(lambda: len(self.receiver.spans()) >= count, f"span {count}")

    def test_the_worker_stays_a_process_of_one_thread(self):
        nginx = self.start("location / { return 200; }", endpoint=f"http://localhost:{self.receiver.port}",
                           main="env OTEL_BSP_SCHEDULE_DELAY=1;")
        self.check_bursts(nginx)
        self.assertEqual(list(nginx.workers().values()), [("nginx: worker process", 1)])
        self.check_sums(nginx.quit(), delivered=20)

    def test_every_event_method_sees_every_batch(self):
        for method in "epoll", "poll", "select":
            with self.subTest(method), Receiver() as self.receiver:
                nginx = scene.Nginx(self.receiver.endpoint, "location / { return 200; }",
                                    main="env OTEL_BSP_SCHEDULE_DELAY=1;",
                                    events=f"worker_connections 64; use {method};")
                if "invalid event type" in nginx.run("-t").communicate(timeout=scene.SECONDS)[0]:
                    nginx.folder.cleanup()
                    self.skipTest(f"an nginx without {method}")
                with nginx:
                    self.check_bursts(nginx)
                    self.check_sums(nginx.quit(), delivered=20)

    def test_a_single_process_exports(self):
        nginx = self.start("location / { return 200; }", main="master_process off; env OTEL_BSP_SCHEDULE_DELAY=1;")
        self.check_bursts(nginx)
        self.check_sums(nginx.quit(), delivered=20)

    def test_a_worker_without_connections_left_exports(self):
        """Of eight, two listen, one is for the master, and one for the export."""
        nginx = self.start("location / { return 200; }", main="env OTEL_BSP_SCHEDULE_DELAY=1;",
                           events="worker_connections 8;")
        with contextlib.ExitStack() as held:
            def begin(text):
                client = held.enter_context(socket.create_connection(("127.0.0.1", nginx.port), scene.SECONDS))
                client.sendall(text)
                return client

            def is_full():
                begin(b"GET / HTTP/1.1\r\n")  # which nginx does not close for the next, as it has begun
                return "connections are not enough\n" in nginx.log()

            for _ in range(30):  # kept alive; nginx closes the oldest of them for the next
                self.assertIn(b" 200 ", begin(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").recv(4096))
            scene.wait_for(is_full, "no connection left")
            scene.wait_for(lambda: len(self.receiver.spans()) >= 30, "30 spans")
        self.check_bursts(nginx, 30)
        nginx.quit()

    def test_requests_are_served_while_a_receiver_hangs(self):
        for number, seconds in (signal.SIGTERM, 1), (signal.SIGQUIT, 5):
            with socket.create_server(("127.0.0.1", 0)) as hanging:  # it takes connections, and says nothing
                nginx = self.start("location / { return 200; }", main="env OTEL_BSP_SCHEDULE_DELAY=1;",
                                   endpoint=f"http://127.0.0.1:{hanging.getsockname()[1]}")
                nginx.request("/")
                with hanging.accept()[0] as connection:
                    self.assertIn(b"POST", connection.recv(4))
                    began = time.monotonic()
                    for _ in range(100):
                        self.assertEqual(nginx.request("/")[0], 200)
                    self.assertLess(time.monotonic() - began, 5)  # an export that is waited for takes 10 s
                    began = time.monotonic()
                    self.check_sums(nginx.quit(number), ended=101, dropped=101)
                    self.assertLess(time.monotonic() - began, seconds + 4)


class Lives(Case):
    def test_http2_is_as_http1(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        for _ in range(2):
            done = subprocess.run(
                ["curl", "-sS", "--http2-prior-knowledge", "-H", f"traceparent: {TRACEPARENT['traceparent']}",
                 "-A", "agent/1", f"http://127.0.0.1:{nginx.port2}/a"],
                stdout=subprocess.PIPE, text=True, check=True, timeout=scene.SECONDS)
            self.assertEqual(done.stdout, "ok\n")
        self.check_sums(nginx.quit(), delivered=4)
        self.check_tree(*2 * ["front server GET / 200", "  front client GET 200"])
        for _, span in scene.spans_of(self.receiver):
            self.assertEqual(span.trace_id.hex(), TRACE)
            if scene.KINDS[span.kind] == "server":
                held = attributes(span)
                self.assertEqual((held["network.protocol.version"], held["server.port"], held["user_agent.original"]),
                                 ("2", nginx.port2, "agent/1"))

    def test_only_workers_start_an_sdk(self):
        nginx = self.start("location / { return 200; }", "proxy_cache_path cache keys_zone=a:1m;", workers=2)
        scene.wait_for(lambda: any("cache" in title for title, _ in nginx.workers().values()), "the cache's processes")
        self.assertEqual(len(nginx.quit()), 2)
        self.assertEqual(self.receiver.heard, [])

    def test_a_test_of_the_configuration_starts_nothing(self):
        nginx = self.start("location / { return 200; }")
        test = nginx.run("-t")
        self.assertIn("test is successful", test.communicate(timeout=scene.SECONDS)[0])
        self.assertEqual(self.receiver.heard, [])

    def test_the_readme_has_configurations(self):
        nginx = self.start("location / { return 200; }")
        readme = (scene.ROOT / "integrations/nginx/README.md").read_text()
        first, second = re.findall("```nginx\n(.*?)```", readme, re.S)
        for old, new in (("modules/ngx_http_otel_module.so", str(nginx.module)), ("/var/log/nginx/", ""),
                         ("listen 80", f"listen 127.0.0.1:{scene.free_port()}")):
            self.assertIn(old, first)
            first = first.replace(old, new)
        for text in first, first.replace("otel_trace on;", "otel_trace on;" + second):
            nginx.text = text + "pid nginx.pid; error_log error.log; events {}\n"
            test = nginx.run("-t")
            self.assertIn("test is successful", test.communicate(timeout=scene.SECONDS)[0])

    def test_a_reload_under_load_loses_nothing(self):
        nginx = self.start(f"location / {{ {self.to}; }}", workers=2)
        count = 0
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                work = [pool.submit(nginx.request, "/") for _ in range(100)]
                before = set(nginx.workers())
                nginx.send(signal.SIGHUP)
                scene.wait_for(lambda: not before & set(nginx.workers()), "workers of the last configuration")
                count += sum(each.result()[0] == 200 for each in work)
        self.assertEqual(count, 300)
        sums = nginx.quit()
        self.assertEqual(len(sums), 8)
        self.check_sums(sums, delivered=600, open=0)
        self.assertEqual(len(self.receiver.spans()), 600)

    def test_quit_and_stop_send_what_is_left(self):
        for number in signal.SIGQUIT, signal.SIGTERM:
            nginx = self.start("location / { return 200; }", main="env OTEL_BSP_SCHEDULE_DELAY=600000;")
            nginx.request("/")
            self.check_sums(nginx.quit(number), delivered=1)
        self.assertEqual(len(self.receiver.spans()), 2)

    def test_a_receiver_that_is_away_costs_spans_only(self):
        gone = Receiver()
        with gone:
            nginx = self.start(f"location / {{ {self.to}; }}", endpoint=gone.endpoint)
            self.assertEqual(nginx.request("/")[0], 200)
            scene.wait_for(lambda: len(gone.spans()) == 2, "two spans")
        for connection in list(gone.open):
            connection.request.shutdown(socket.SHUT_RDWR)
        for _ in range(5):
            self.assertEqual(nginx.request("/")[0], 200)
        self.check_sums(nginx.quit(), delivered=2, dropped=10)
        self.assertRegex(nginx.log(), r"\[warn\].*otel-c: exporter 0: started 12")

    def test_a_spool_keeps_what_a_worker_cannot_send(self):
        port = scene.free_port()
        with tempfile.TemporaryDirectory() as spool:
            nginx = self.start("location / { return 200; }", endpoint=f"http://127.0.0.1:{port}",
                               main=f"env OTEL_C_SPOOL_DIR={spool};")
            nginx.request("/of-first-worker")
            before = set(nginx.workers())
            nginx.send(signal.SIGHUP)
            scene.wait_for(lambda: not before & set(nginx.workers()), "another worker")
            with Receiver(port=port) as receiver:
                nginx.request("/of-second-worker")
                scene.wait_for(lambda: len(receiver.spans()) == 2, "both spans")
                first, second = nginx.quit()
        self.assertEqual((first["spooled"], first["dropped"], second["delivered"]), (1, 0, 1))

    def test_a_request_that_is_cut_off_ends_its_spans(self):
        nginx = self.start(f"location / {{ {self.to}; }}")
        nginx.say(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
        self.check_sums(nginx.quit(), open=0)
        self.assertIn("front server POST / 4", scene.tree(self.receiver))


def main():
    scene.skip_without("curl")
    sanitizers = sys.argv.pop(1) if len(sys.argv) > 1 and re.match("(address|undefined|thread)", sys.argv[1]) else ""
    scene.Nginx.set_module(BUILD, sanitizers)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
