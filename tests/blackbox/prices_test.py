# SPDX-License-Identifier: Apache-2.0
"""What each setting makes a span cost the thread that makes it, in instructions.

callgrind counts the same wherever it runs. A price is that of a span, its start and its end, divided
by that of a plain one, which has a name and is batched for OTLP. A bound over ten has its reason
beside it. Bounds leave room for other compilers.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

# A clock that converts times is read once a millisecond, and callgrind makes the machine slow: the
# least of many short rounds has the fewest readings, also where the machine is busy.
ROUNDS = 20
SPANS = 50
# Nothing is exported while spans are counted.
QUIET = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_BSP_MAX_QUEUE_SIZE": "100000",
         "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100000", "OTEL_LOG_LEVEL": "none",
         "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


def exporter(word):
    return {"OTEL_TRACES_EXPORTER": word}


def sampler(word, argument=""):
    return {"OTEL_TRACES_SAMPLER": word, "OTEL_TRACES_SAMPLER_ARG": argument}


# What is set, how spans are processed, the form of the span, and the bound of its price.
ROWS = [
    ({}, "batching", "kind", 1.3),
    ({}, "batching", "started", 2),
    ({}, "batching", "string", 3),
    ({}, "batching", "int", 3),
    ({}, "batching", "double", 5),
    ({}, "batching", "bool", 5),
    ({}, "batching", "bytes", 6),
    # Three elements each; every string, key and value is checked and written on its own.
    ({}, "batching", "strings", 11),
    ({}, "batching", "ints", 8),
    ({}, "batching", "doubles", 8),
    ({}, "batching", "bools", 8),
    ({}, "batching", "map", 21),
    # The tracer, one of 2,000, is asked for too: its parts are written, hashed and compared.
    ({}, "batching", "tracer", 10),
    (exporter("otlp"), "batching", "plain", 1.1),
    (exporter("console"), "batching", "plain", 1.1),
    (exporter("otlp/stdout"), "batching", "plain", 1.1),
    (exporter("none"), "batching", "plain", 1.3),
    (sampler("always_on"), "batching", "plain", 1.1),
    (sampler("always_off"), "batching", "plain", 1.1),
    (sampler("parentbased_always_on"), "batching", "plain", 1.1),
    (sampler("parentbased_always_off"), "batching", "plain", 1.1),
    (sampler("traceidratio", "1"), "batching", "plain", 3),
    (sampler("traceidratio", "0.5"), "batching", "plain", 3),
    (sampler("parentbased_traceidratio", "0.5"), "batching", "plain", 3),
    (sampler("jaeger_remote", "endpoint=http://127.0.0.1:9"), "batching", "plain", 7),
    (sampler("parentbased_jaeger_remote", "endpoint=http://127.0.0.1:9"), "batching", "plain", 7),
    # The span is shown to the processor when it starts, and decoded for it when it has ended.
    ({}, "noop", "plain", 14),
    (exporter("none"), "noop", "plain", 14),
    # Synchronous: each end makes a batch of the span, under a lock, and exports it there.
    (exporter("none"), "simple", "plain", 12),
]


def count(settings, processing, forms):
    """Instructions of a span of each form, of one process."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "part")
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--quiet", "--toggle-collect=measured",
             "--dump-after=measured", f"--callgrind-out-file={out}", harness.program("prices"),
             str(ROUNDS), str(SPANS), processing, *forms],
            env=harness.environment({**QUIET, **settings}), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, timeout=harness.RUN_SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        counts = {}
        for index, form in enumerate(forms):
            parts = [pathlib.Path(f"{out}.{index * ROUNDS + i + 1}") for i in range(ROUNDS)]
            totals = re.findall(r"^totals: (\d+)", "\n".join(p.read_text() for p in parts), re.M)
            counts[form] = min(map(int, totals)) / SPANS
        return counts


@unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
class Prices(unittest.TestCase):
    def test_no_setting_is_dear(self):
        worlds = {}  # what one process can count
        for settings, processing, form, _ in [({}, "batching", "plain", 0), *ROWS]:
            key = (tuple(sorted(settings.items())), processing)
            worlds.setdefault(key, []).append(form)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = dict(zip(worlds, pool.map(
                lambda world: count(dict(world[0]), world[1], worlds[world]), worlds)))
        plain = counts[((), "batching")]["plain"]
        print(f"a plain span is {plain:.0f} instructions", file=sys.stderr)
        for settings, processing, form, bound in ROWS:
            price = counts[(tuple(sorted(settings.items())), processing)][form] / plain
            words = " ".join([*(settings.values()), processing, form])
            print(f"{price:6.2f} of {bound:5}  {words}", file=sys.stderr)
            with self.subTest(words):
                self.assertLessEqual(price, bound)


if __name__ == "__main__":
    harness.main()
