# SPDX-License-Identifier: Apache-2.0
"""otel-doctor --pid says what counts in a process that runs, or which rule forbids to look."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

USER, OTHER = 12345, 12346
NEEDS_ROOT = unittest.skipUnless(os.geteuid() == 0, "only root can be other users")


def setUpModule():
    """Programs and libraries where every user can read them."""
    global FOLDER, SHARED
    FOLDER = tempfile.TemporaryDirectory(prefix="doctor_pid.")
    SHARED = pathlib.Path(FOLDER.name)
    SHARED.chmod(0o755)
    for path in (harness.program("published"), harness.program("otel-doctor"), *harness.LIBRARIES.glob("libotel*.so*")):
        shutil.copy(path, SHARED, follow_symlinks=True)


def tearDownModule():
    FOLDER.cleanup()


def command(name, *words, user=None):
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    return [*become, str(SHARED / name), *words]


@contextlib.contextmanager
def running(*words, user=None, env=None):
    """The number of a process of programs/published.c."""
    environment = harness.environment({"LD_LIBRARY_PATH": str(SHARED), **(env or {})})
    with subprocess.Popen(command("published", *words, user=user), env=environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield int(process.stdout.readline())
        process.stdin.close()


def look(pid, *options, user=None, before=()):
    return subprocess.run([*before, *command("otel-doctor", "--pid", str(pid), *options, user=user)], text=True,
                          env=harness.environment({"LD_LIBRARY_PATH": str(SHARED),
                                                   "OTEL_TRACES_EXPORTER": "none"}),
                          capture_output=True, timeout=harness.RUN_SECONDS, check=False)


def report_of(pid, **options):
    done = look(pid, "--json", **options)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["healthy"] else 1), done
    return report


def settings(report):
    return {one["name"]: (one["value"], one.get("from")) for one in report["settings"]}


DEFAULT = ("spans go to http://localhost:4318/v1/traces (default) by otlp_http_span_exporter (default); "
           "sampler parentbased_always_on (default); service unknown_service:published (default)")


def message(report):
    """What the sentence says of the process."""
    return report["diagnosis"].removeprefix(f"In process {report['pid']} ").removesuffix(".")


class WhatCounts(unittest.TestCase):
    def test_an_environment_that_counts_though_it_was_wiped(self):
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:SECRET@127.0.0.1:9/base?key=SECRET",
               "OTEL_EXPORTER_OTLP_HEADERS": "authorization=SECRET", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
               "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
        with running("wipe", env=env) as pid:
            self.assertNotIn(b"OTEL_EXPORTER", pathlib.Path(f"/proc/{pid}/environ").read_bytes())

            report = report_of(pid)

            self.assertNotIn("SECRET", pathlib.Path(f"/proc/{pid}/maps").read_text())
        found = settings(report)
        self.assertEqual(message(report), "spans go to http://127.0.0.1:9/base/v1/traces "
                         "(OTEL_EXPORTER_OTLP_ENDPOINT) by otlp_http_json_span_exporter "
                         "(OTEL_EXPORTER_OTLP_PROTOCOL); sampler traceidratio 0.5 (OTEL_TRACES_SAMPLER); "
                         "service unknown_service:published (default)")
        self.assertEqual(found["OTEL_EXPORTER_OTLP_PROTOCOL"], ("http/json", "environment"))
        self.assertEqual(found["OTEL_TRACES_SAMPLER"], ("traceidratio", "environment"))
        self.assertEqual(found["OTEL_TRACES_SAMPLER_ARG"], ("0.5", "environment"))
        self.assertEqual(found["OTEL_EXPORTER_OTLP_HEADERS"][0], "authorization=***")

    def test_nothing_in_the_environment_is_the_default(self):
        with running() as pid:
            report = report_of(pid)
        self.assertEqual(message(report), DEFAULT)
        self.assertEqual(list(settings(report)), ["otel-c"])

    def test_code_that_counts_more_than_the_environment(self):
        with running("code", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://nowhere:1"}) as pid:
            report = report_of(pid)
            self.assertNotIn("SECRET", pathlib.Path(f"/proc/{pid}/maps").read_text())
        self.assertEqual(message(report), "spans go to http://127.0.0.1:9/in/code (code) by "
                         "otlp_http_span_exporter (code); sampler AlwaysOnSampler (code); "
                         "service unknown_service:published (default)")

    def test_a_default_of_the_program_is_beaten_by_the_environment(self):
        with running("defaults", env={"OTEL_SERVICE_NAME": "environment"}) as pid:
            report = report_of(pid)
        self.assertRegex(message(report), r"by console_exporter \(default of the program\);")
        self.assertEqual(settings(report)["OTEL_TRACES_EXPORTER"], ("console", "default of the program"))
        self.assertEqual(settings(report)["OTEL_SERVICE_NAME"], ("environment", "environment"))

    def test_what_keeps_spans_in(self):
        for rule, env in (("process.disabled", {"OTEL_SDK_DISABLED": "true"}),
                          ("process.exporter_none", {"OTEL_TRACES_EXPORTER": "none"}),
                          ("process.sampler_off", {"OTEL_TRACES_SAMPLER": "always_off"})):
            with self.subTest(rule), running(env=env) as pid:
                self.assertEqual(report_of(pid)["rule"], rule)

    def test_it_lasts_as_long_as_the_sdk(self):
        with running("restart", env={"OTEL_SERVICE_NAME": "first"}) as pid:
            found = report_of(pid)["settings"]
            self.assertEqual([one["value"] for one in found if one["name"] == "OTEL_SERVICE_NAME"], ["again"])
        with running("shutdown") as pid:
            self.assertEqual(report_of(pid)["rule"], "process.silent")
        with running(env={"OTEL_C_THREAD_CONTEXT": "off"}) as pid:
            self.assertEqual(report_of(pid)["rule"], "process.silent")

    def test_neither_a_fork_nor_closed_descriptors_hide_it(self):
        for word in ("fork", "close"):
            with self.subTest(word), running(word) as pid:
                self.assertEqual(message(report_of(pid)), DEFAULT)

    def test_a_process_without_memory_for_files_starts_all_the_same(self):
        limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); os.execv(sys.argv[1], sys.argv[1:])"
        environment = harness.environment({"LD_LIBRARY_PATH": str(SHARED)})
        with subprocess.Popen(["/usr/bin/python3", "-c", limited, *command("published")], env=environment,
                              text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            pid = int(process.stdout.readline())
            self.assertEqual(message(report_of(pid)), DEFAULT)
            process.stdin.close()
        self.assertEqual(process.returncode, 0)

    def test_for_people(self):
        with running(env={"OTEL_SERVICE_NAME": "shop"}) as pid:
            text = look(pid).stdout
            brief = look(pid, "--brief")
        self.assertRegex(text, r"(?m)\AWhat counts in process \d+ .*\n  otel-c +\d")
        self.assertRegex(text, r"(?m)^  OTEL_SERVICE_NAME +shop  \(environment\)$")
        self.assertEqual((brief.returncode, brief.stdout), (0, text.splitlines()[-1] + "\n"))


def forbidden(pid, why="Permission denied"):
    return (f"The kernel does not let otel-doctor look into process {pid} ({why}): run it as the user of that process "
            "or, where that is not enough, as root with CAP_SYS_PTRACE in the name space of that process.")


class Rules(unittest.TestCase):
    def test_no_such_process(self):
        with running() as pid:
            pass
        self.assertEqual(report_of(pid)["rule"], "process.absent")

    def test_a_process_without_otel(self):
        self.assertEqual(report_of(os.getpid())["rule"], "process.silent")

    def test_wrong_usage(self):
        for options in (["--pid", "me"], ["--pid", "0"], ["--pid", "1", "--endpoint", "http://h"]):
            done = subprocess.run(command("otel-doctor", *options), capture_output=True, check=False,
                                  env=harness.environment({"LD_LIBRARY_PATH": str(SHARED)}))
            self.assertEqual(done.returncode, 2)

    @NEEDS_ROOT
    def test_users(self):
        with running(user=USER) as pid:
            self.assertEqual(message(report_of(pid, user=USER)), DEFAULT)
            self.assertEqual(message(report_of(pid)), DEFAULT)  # root
            report = report_of(pid, user=OTHER)
        self.assertEqual(report["diagnosis"], forbidden(pid))

    @NEEDS_ROOT
    def test_dropped_privileges(self):
        with running("drop", "wipe") as pid:
            self.assertEqual(message(report_of(pid)), DEFAULT)  # root
            report = report_of(pid, user=USER)
        self.assertEqual((report["diagnosis"], report["healthy"]), (forbidden(pid), False))

    @NEEDS_ROOT
    def test_a_proc_that_hides_processes(self):
        before = harness.after_mount(self, "-t proc -o hidepid=2 proc /proc")
        with running() as pid:
            report = report_of(pid, user=USER, before=before)
        self.assertEqual(report["diagnosis"], forbidden(pid, "No such file or directory"))

    @NEEDS_ROOT
    def test_root_without_capabilities(self):
        """CAP_SYS_PTRACE would do, and for newer kernels CAP_PERFMON."""
        for user in None, USER:
            with self.subTest(user), running(user=user) as pid:
                report = report_of(pid, before=["setpriv", "--bounding-set=-all"])
                self.assertEqual(report["diagnosis"], forbidden(pid))


if __name__ == "__main__":
    harness.main()
