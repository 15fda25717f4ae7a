# SPDX-License-Identifier: Apache-2.0
"""The ratio samplers sample the ratio that they are given, of trace ids that the library makes.

Every process has other ids, so the numbers below are random; a bound of five or six standard
deviations is one that a right library passes practically always.
"""
import math
import os
import unittest

import harness

RATIOS = ["0.5", "0.1", "0.01", "0.005", "0.001", "1e-4", "1e-5"]
if os.environ.get("OTEL_TEST_LONG"):
    RATIOS = ["1e-6"]  # 100 million roots
LEAST_ROOTS = 100_000


def count(sampler, ratio, roots):
    env = {"OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": sampler,
           "OTEL_TRACES_SAMPLER_ARG": ratio}
    done = harness.run("roots", "count", roots, env=env)
    return int(done.stdout)


class Ratios(unittest.TestCase):
    def test_each_ratio_is_kept(self):
        for sampler in ("traceidratio", "parentbased_traceidratio"):
            for ratio in RATIOS:
                with self.subTest(sampler=sampler, ratio=ratio):
                    part = float(ratio)
                    roots = max(LEAST_ROOTS, round(100 / part))
                    deviation = math.sqrt(roots * part * (1 - part))
                    self.assertLess(abs(count(sampler, ratio, roots) - roots * part), 5 * deviation)

    def test_a_thousandth_of_a_million(self):
        sampled = count("traceidratio", "0.001", 1_000_000)
        self.assertTrue(840 <= sampled <= 1160, sampled)

    def test_every_bit_of_an_id_is_random(self):
        roots = LEAST_ROOTS
        for sampler in ("always_on", "always_off", "traceidratio"):
            for way in ("enter", "start"):
                with self.subTest(sampler=sampler, way=way):
                    env = {"OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": sampler,
                           "OTEL_TRACES_SAMPLER_ARG": "0.5"}
                    *bits, random = map(int, harness.run("roots", "bits", roots, way, env=env)
                                        .stdout.split())
                    self.assertEqual((len(bits), random), (128 + 64, roots))
                    far = {bit: times for bit, times in enumerate(bits)
                           if abs(times - roots / 2) > 6 * math.sqrt(roots) / 2}
                    self.assertEqual(far, {})


if __name__ == "__main__":
    harness.main()
