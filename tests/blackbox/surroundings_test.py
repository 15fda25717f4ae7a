# SPDX-License-Identifier: Apache-2.0
"""What counts of the environment, and what messages call it that is wrong there."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOBODY = 65534


def warnings(done):
    return [line for line in done.stderr.splitlines() if line.startswith("otel-c: ")]


class MoreRights(unittest.TestCase):
    """A program with more rights than its caller believes nothing of the caller's environment."""
    ENVIRONMENT = {"OTEL_TRACES_SAMPLER": "always_off", "TRACEPARENT": TRACEPARENT}

    def run_as_nobody(self, env, prepare):
        if os.geteuid() != 0:
            self.skipTest("only root makes such programs")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            if os.statvfs(folder).f_flag & os.ST_NOSUID:
                self.skipTest("this file system is mounted nosuid")
            copy = pathlib.Path(folder, "surroundings")
            shutil.copy(harness.program("surroundings"), copy)
            prepare(copy)
            done = subprocess.run([copy], env=env, user=NOBODY, group=NOBODY, extra_groups=[],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=harness.RUN_SECONDS, check=False)
        if "cannot open shared object" in done.stdout:
            self.skipTest("other users may not read the libraries")
        return done.stdout

    def test_a_setuid_program_reads_nothing(self):
        def make_setuid(path):
            path.chmod(0o4755)

        said = self.run_as_nobody(self.ENVIRONMENT, make_setuid)
        self.assertEqual(said, "ok, sampled 1, has a caller: no\n")
        said = self.run_as_nobody({"OTEL_CONFIG_FILE": "/nowhere.yaml"}, make_setuid)
        self.assertEqual(said, "ok, sampled 1, has a caller: no\n")

    def test_a_program_with_capabilities_reads_nothing(self):
        if shutil.which("setcap") is None:
            self.skipTest("there is no setcap")

        def add_capability(path):
            path.chmod(0o755)
            subprocess.run(["setcap", "cap_net_bind_service=ep", path], check=True)

        said = self.run_as_nobody(self.ENVIRONMENT, add_capability)
        self.assertEqual(said, "ok, sampled 1, has a caller: no\n")

    def test_others_read_it(self):
        done = harness.run("surroundings", env=self.ENVIRONMENT)
        self.assertEqual(done.stdout, "ok, sampled 0, has a caller: yes\n")


class Endpoints(unittest.TestCase):
    def test_a_bad_one_for_traces_leaves_the_general_one(self):
        with harness.Receiver() as receiver:
            done = harness.run("one_span", receiver=receiver,
                               env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://user:secret@x/"})
        self.assertEqual(len(receiver.spans()), 1)
        self.assertEqual(receiver.heard[0][0], "/v1/traces")
        (line,) = warnings(done)
        self.assertRegex(line, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is .*"
                               "; using OTEL_EXPORTER_OTLP_ENDPOINT$")
        self.assertNotIn("secret", line)

    def test_two_bad_ones_are_two_warnings_and_the_default(self):
        done = harness.run("one_span", env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://x/",
                                            "OTEL_EXPORTER_OTLP_ENDPOINT": "nothing",
                                            "OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
        traces, general = [line for line in warnings(done) if "; using" in line]
        self.assertIn("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is", traces)
        self.assertRegex(general, "OTEL_EXPORTER_OTLP_ENDPOINT is .*"
                                  "; using http://localhost:4318/v1/traces$")


class Names(unittest.TestCase):
    """A message calls a setting as its giver does."""

    def said(self, env, program="one_span", *arguments):
        with harness.Receiver() as receiver:
            return warnings(harness.run(program, *arguments, receiver=receiver, env=env))

    def test_settings_for_traces(self):
        for name, value in (("HEADERS", "bad"), ("CLIENT_KEY", "/key.pem"),
                            ("CLIENT_CERTIFICATE", "/certificate.pem")):
            for variable in (f"OTEL_EXPORTER_OTLP_{name}", f"OTEL_EXPORTER_OTLP_TRACES_{name}"):
                with self.subTest(variable):
                    (line,) = self.said({variable: value})
                    self.assertRegex(line, rf"^otel-c: warning: {variable}\b")

    def test_headers_are_one_warning(self):
        (line,) = self.said({"OTEL_EXPORTER_OTLP_HEADERS": "a=1,secret one,secret two,b=2,three"})
        self.assertIn("OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not name=value; 3 entries are left out", line)
        self.assertNotIn("secret", line)

    def test_a_configuration_file_that_is_none(self):
        for variable in ("OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"):
            lines = self.said({variable: "   "})
            self.assertIn(f'{variable}="   "', lines[-1])

    def test_resource_attributes_of_code(self):
        (line,) = self.said({}, "surroundings", "no pair")
        self.assertIn("otel_sdk_options.resource_attributes is malformed", line)
        (line,) = self.said({"OTEL_RESOURCE_ATTRIBUTES": "no pair"}, "surroundings")
        self.assertIn("OTEL_RESOURCE_ATTRIBUTES is malformed", line)


if __name__ == "__main__":
    harness.main()
