# SPDX-License-Identifier: Apache-2.0
"""What cannot be written to is said once, in words, and early; what is lost is counted."""
import os
import pathlib
import tempfile
import unittest

import harness

STDOUT = {"OTEL_TRACES_EXPORTER": "otlp/stdout"}


def run(*arguments, stdout=None, **options):
    """The lines on stderr; `stdout`: a descriptor, -1 for none."""
    prepare = None
    if stdout is not None:
        prepare = (lambda: os.close(1)) if stdout < 0 else (lambda: os.dup2(stdout, 1))
    done = harness.run("outputs", *arguments, preexec_fn=prepare,
                       pass_fds=() if stdout is None or stdout < 0 else (stdout,), **options)
    assert done.returncode == 0, done
    return done.stderr.splitlines()


class Stdout(unittest.TestCase):
    def loses_all(self, descriptor, reason):
        complaint, loss, result = run(stdout=descriptor, env=STDOUT)
        self.assertEqual(complaint, "otel-c: error: file exporter: 1 span could not be written to "
                                    f"stdout: {reason}")
        self.assertEqual(loss, "otel-c: warning: otlp_stdout_exporter: losing spans (permanent_error): "
                               "1 span is lost so far")
        self.assertTrue(result.endswith(": delivered 0, dropped 3 (permanent_error 3)"), result)

    def test_that_is_closed_is_named_at_the_start(self):
        complaint, result = run(stdout=-1, env=STDOUT)
        self.assertEqual(complaint, "otel-c: error: not started: otlp/stdout cannot write to stdout: "
                                    "Bad file descriptor")
        self.assertTrue(result.startswith("start a system call failed, "), result)

    def test_that_nobody_reads_any_more_ends_no_program(self):
        reading, writing = os.pipe()
        os.close(reading)
        self.loses_all(writing, "Broken pipe")
        os.close(writing)

    def test_that_is_full(self):
        with open("/dev/full", "w") as full:
            self.loses_all(full.fileno(), "No space left on device")

    def test_that_the_program_closes_later_still_takes_spans(self):
        done = harness.run("outputs", "close", env=STDOUT)
        self.assertEqual(done.stderr, "start ok, shutdown ok: delivered 3, dropped 0\n")
        self.assertEqual(len(done.stdout.splitlines()), 3)


class Perfetto(unittest.TestCase):
    def test_refuses_what_cannot_be_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            for path in "/dev/null", "/dev/zero", "/dev/full", pipe:
                self.assertEqual(run("perfetto", path),
                                 ["a system call failed, Invalid argument"], path)


class Spool(unittest.TestCase):
    def start_with(self, folder, port=0):
        """What a program says that needs no spool, for its receiver is there."""
        with harness.Receiver(port=port) as receiver:
            *said, result = run(receiver=receiver, env={"OTEL_C_SPOOL_DIR": str(folder)})
            port = receiver.port
        self.assertIn("start ok, shutdown ok: delivered 3, dropped 0", result)
        return [line for line in said if "disk" in line], port

    def test_directory_that_cannot_be_used_is_named_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "file")
            file.touch()
            for path, reason in ((f"{folder}/none", "No such file or directory"),
                                 (file, "Not a directory")):
                self.assertEqual(self.start_with(path)[0], [
                    f"otel-c: warning: spans cannot be put to disk in {path}: {reason}"])

    def test_directory_of_ours_that_others_can_write_to(self):
        with tempfile.TemporaryDirectory() as folder:
            said, port = self.start_with(folder)
            self.assertEqual(said, [])
            own, = pathlib.Path(folder).iterdir()
            own.chmod(0o777)
            self.assertEqual(self.start_with(folder, port)[0], [
                f"otel-c: warning: spans cannot be put to disk in {folder}: the spool's own directory "
                "is another user's, or open to others for writing"])


if __name__ == "__main__":
    harness.main()
