# SPDX-License-Identifier: Apache-2.0
"""The one message at the start: where spans go, by which sampler, and who said so."""
import pathlib
import tempfile
import unittest

import harness

DEFAULT = "http://localhost:4318/v1/traces"
SERVICE = "; service unknown_service:announced (default)"
SAMPLER = "; sampler parentbased_always_on (default)" + SERVICE


def news(*arguments, **env):
    return harness.run("announced", *arguments, env=env).stdout.splitlines()


class Announced(unittest.TestCase):
    maxDiff = None

    def test_defaults(self):
        self.assertEqual(news(), [f"spans go to {DEFAULT} (default) by otlp_http_span_exporter "
                                  f"(default){SAMPLER}"])

    def test_variables_are_named_and_secrets_are_not_shown(self):
        (line,) = news(OTEL_EXPORTER_OTLP_ENDPOINT="http://user:secret@127.0.0.1:9/base?key=secret",
                       OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/json",
                       OTEL_EXPORTER_OTLP_HEADERS="authorization=secret",
                       OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.5")
        self.assertNotIn("secret", line)
        self.assertRegex(line, r"^spans go to http://.*127\.0\.0\.1:9/base.* "
                               r"\(OTEL_EXPORTER_OTLP_ENDPOINT\) by otlp_http_json_span_exporter "
                               r"\(OTEL_EXPORTER_OTLP_TRACES_PROTOCOL\); "
                               r"sampler traceidratio 0\.5 \(OTEL_TRACES_SAMPLER\); service ")

    def test_the_ratio_is_the_one_in_force(self):
        for given, shown in (("0.5", "0.5"), ("10", "1.0"), (None, "1.0")):
            with self.subTest(given):
                env = {"OTEL_TRACES_SAMPLER_ARG": given} if given else {}
                lines = news(OTEL_TRACES_SAMPLER="parentbased_traceidratio", **env)
                self.assertRegex(lines[0], f"; sampler parentbased_traceidratio {shown} "
                                           r"\(OTEL_TRACES_SAMPLER\); service ")

    def test_an_argument_that_the_sampler_does_not_take_is_not_shown(self):
        for sampler in "always_on", "parentbased_always_off":
            (line,) = news(OTEL_TRACES_SAMPLER=sampler, OTEL_TRACES_SAMPLER_ARG="0.5")
            self.assertTrue(line.endswith(f"; sampler {sampler} (OTEL_TRACES_SAMPLER){SERVICE}"), line)

    def test_the_service_and_where_its_name_comes_from(self):
        for env, shown in (({"OTEL_SERVICE_NAME": "shop"}, "shop (OTEL_SERVICE_NAME)"),
                           ({"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=list"}, "list (OTEL_RESOURCE_ATTRIBUTES)"),
                           ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=list", "OTEL_SERVICE_NAME": "shop"},
                            "shop (OTEL_SERVICE_NAME)"),
                           ({"OTEL_ENTITIES": "service{service.name=entity}"}, "entity (OTEL_ENTITIES)"),
                           ({}, "unknown_service:announced (default)")):
            with self.subTest(env):
                (line,) = news(**env)
                self.assertTrue(line.endswith(f"; service {shown}"), line)

    def test_a_bad_argument_in_code_starts_nothing(self):
        for sampler, argument in (("traceidratio", "10"), ("parentbased_jaeger_remote", "endpoint")):
            with self.subTest(sampler):
                done = harness.run("announced", "sampler", sampler, argument, env={})
                self.assertEqual((done.stdout, done.returncode), ("", 1))

    def test_an_endpoint_for_traces(self):
        (line,) = news(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:8",
                       OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://127.0.0.1:9/t")
        self.assertIn("to http://127.0.0.1:9/t (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) by", line)

    def test_an_endpoint_that_cannot_be_used(self):
        (line,) = news(OTEL_EXPORTER_OTLP_ENDPOINT="nothing")
        self.assertIn(f"spans go to {DEFAULT} (default) by", line)

    def test_several_exporters_and_none(self):
        self.assertEqual(news(OTEL_TRACES_EXPORTER="console,otlp",
                              OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"),
                         ["spans go to stdout (OTEL_TRACES_EXPORTER) by console_exporter "
                          "(OTEL_TRACES_EXPORTER), to http://127.0.0.1:9/v1/traces "
                          "(OTEL_EXPORTER_OTLP_ENDPOINT) by otlp_http_span_exporter (default)"
                          + SAMPLER])
        self.assertEqual(news(OTEL_TRACES_EXPORTER="none"),
                         ["spans go nowhere: there is no exporter (OTEL_TRACES_EXPORTER)" + SAMPLER])
        self.assertEqual(news(OTEL_SDK_DISABLED="true"),
                         ["no span is recorded: the SDK is disabled (OTEL_SDK_DISABLED)"])

    def test_code(self):
        self.assertEqual(news("code", "http://127.0.0.1:9"),
                         ["spans go to http://127.0.0.1:9/v1/traces (code) by "
                          "otlp_http_json_span_exporter (code), to stdout (code) by "
                          "console_exporter (code), to memory_exporter (code); "
                          "sampler traceidratio 1.0 (code)" + SERVICE])

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "otel.yaml")
            path.write_text("""file_format: "1.0"
resource: {attributes: [{name: service.name, value: yaml}]}
tracer_provider:
  sampler: {always_on: }
  processors:
    - batch: {exporter: {otlp_http: {endpoint: "http://127.0.0.1:9/t"}}}
    - batch: {exporter: {otlp_grpc: }}
    - simple: {exporter: {console: }}
""")
            (line,) = news("file", path)
            (by_variable,) = news(OTEL_CONFIG_FILE=str(path))
        self.assertEqual(line, f"spans go to http://127.0.0.1:9/t ({path}) by "
                               f"otlp_http_span_exporter ({path}), to http://localhost:4317/ (default) "
                               f"by otlp_grpc_span_exporter ({path}), to stdout ({path}) by "
                               f"console_exporter ({path}); sampler AlwaysOnSampler ({path}); service yaml ({path})")
        self.assertEqual(by_variable, line)

    def test_what_is_wrong_with_a_file_is_said_once(self):
        done = harness.run("one_span", env={"OTEL_CONFIG_FILE": "/nowhere.yaml"})
        self.assertEqual(done.stderr.splitlines(),
                         ["otel-c: error: /nowhere.yaml: the file cannot be opened: No such file or directory",
                          'otel-c: error: not started, with OTEL_CONFIG_FILE="/nowhere.yaml"'])

    def test_a_static_program_reads_a_file_because_it_is_linked_with_the_library(self):
        if not pathlib.Path(harness.program("one_span_static")).exists():
            self.skipTest("static libraries are not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "otel.yaml")
            path.write_text('file_format: "1.0"\ntracer_provider:\n'
                            "  processors: [{simple: {exporter: {console: }}}]\n")
            done = harness.run("one_span_static", env={"OTEL_CONFIG_FILE": str(path)})
        self.assertIn("start ok", done.stdout, done.stderr)
        self.assertIn("one", done.stdout)

    def test_a_forked_child_says_nothing(self):
        with harness.Receiver() as receiver:
            lines = harness.run("announced", "fork", receiver=receiver).stdout.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertEqual(len(receiver.spans()), 2)

    def test_stderr_has_it_where_the_destination_is_a_default(self):
        def stderr(**env):
            return harness.run("announced", "silent", env=env).stderr

        self.assertIn(f"otel-c: info: spans go to {DEFAULT} (default)", stderr())
        self.assertEqual(stderr(OTEL_LOG_LEVEL="warn"), "")
        elsewhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        self.assertEqual(stderr(**elsewhere), "")
        self.assertIn("otel-c: info: spans go to", stderr(OTEL_LOG_LEVEL="debug", **elsewhere))


if __name__ == "__main__":
    harness.main()
