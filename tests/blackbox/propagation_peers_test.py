# SPDX-License-Identifier: Apache-2.0
"""The program in the middle between other SDKs: Python's (scripts/setup.sh --interop) and Go's (by
the module proxy). Every case of propagation_cases.py arrives at a server that has the SDK, and its
context also begins at a client that has it. Then the peers' samplers are asked about our ids."""
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

import harness
import propagation_cases as cases
import propagation_test as neighbours

sys.path.append(str(harness.SOURCES / "tests/support"))
import receiver as support  # noqa: E402

PEERS = harness.HERE / "peers"
REQUESTS = 300


def go_peer():
    """Go's peer, built once; skipped where there is no Go or no module (CI has both)."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    program = harness.PROGRAMS / "peer-go"
    try:
        subprocess.run([go, "build", "-o", str(program.resolve()), "."], cwd=PEERS / "go", check=True,
                       env=dict(os.environ, GOFLAGS="-buildvcs=false"),
         stderr=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError) as bad:
        if "CI" in os.environ:
            raise
        raise unittest.SkipTest(f"no peer in Go: {bad} {getattr(bad, 'stderr', '')}") from bad
    return program


@contextlib.contextmanager
def peer(language, form):
    """The URL of a peer with these propagators."""
    env = dict(os.environ, OTEL_PROPAGATORS=form)
    command = {"python": lambda: [support.peers_python(), str(PEERS / "propagation.py")],
               "go": lambda: [str(go_peer()), form]}[language]()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=env, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def ask(peer_url, middle, case, path):
    """The answer to a request that a peer sends in a case's context."""
    query = urllib.parse.urlencode({
        "to": f"http://127.0.0.1:{middle.port}{path}", "trace": case.trace, "span": cases.S,
        "sampled": int(case.sampled), "tracestate": case.tracestate, "baggage": json.dumps(case.baggage)})
    with urllib.request.urlopen(f"{peer_url}/send?{query}", timeout=60) as answer:
        return json.load(answer)


class Peers(neighbours.EveryForm):
    """The tests of one language."""

    knows_uberctx = True

    def go_through(self, form):
        chosen = [case for case in cases.CASES if case.form == form]
        if form == "jaeger" and not self.knows_uberctx:
            chosen = [dataclasses.replace(case, baggage={}) for case in chosen]
        known = [case for case in chosen if case.trace is not cases.NEW]
        with harness.Receiver() as receiver, peer(self.language, form) as url:
            middle = neighbours.Middle(url, receiver, OTEL_PROPAGATORS=form)
            raw = [middle.ask(f"/raw/{i}", case.lines) for i, case in enumerate(chosen)]
            sent = [ask(url, middle, case, f"/sent/{i}") for i, case in enumerate(known)]
            self.assertEqual(middle.end(), "")
        for kind, list_, seen in (("raw", chosen, raw), ("sent", known, sent)):
            for i, case in enumerate(list_):
                with self.subTest(kind=kind, case=case.name):
                    neighbours.check(self, case, seen[i])
                    neighbours.check_spans(self, case, f"/{kind}/{i}", seen[i], receiver.spans())

    def test_samplers_agree_on_our_ids(self):
        with harness.Receiver() as receiver, peer(self.language, cases.W3C) as url:
            middle = neighbours.Middle(url, receiver, OTEL_TRACES_SAMPLER="parentbased_traceidratio",
                                       OTEL_TRACES_SAMPLER_ARG="0.3")
            seen = [middle.ask("/", []) for _ in range(REQUESTS)]
            middle.end()
        self.assertEqual([one["sampled"] for one in seen], [one["ratio"] for one in seen])
        sampled = sum(one["sampled"] for one in seen)
        self.assertLess(abs(sampled - 0.3 * REQUESTS), 80)  # ten standard deviations


class Python(Peers, unittest.TestCase):
    language = "python"


class Go(Peers, unittest.TestCase):
    language = "go"
    knows_uberctx = False


if __name__ == "__main__":
    harness.main()
