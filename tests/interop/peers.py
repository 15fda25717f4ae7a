# SPDX-License-Identifier: Apache-2.0
"""Where the peers are, and how the programs of this directory are spoken to.

Import this before anything of a peer's: when the interpreter is not the one that has them, the
script starts again with that one. Without peers the test is skipped, which CI does not allow.
"""
import logging
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
import receiver  # noqa: E402

receiver.run_with_peers()
logging.disable(logging.CRITICAL)  # peers say much about bad input


def encode(text):
    """Any text as a word of a line."""
    return (text if isinstance(text, bytes) else text.encode()).hex() or "-"


def decode(word):
    return bytes.fromhex(word if word != "-" else "").decode(errors="surrogateescape")


class Program:
    """One of ours, which answers each line with a line of words."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask_all(self, questions):
        """The answers to many questions. The program answers when it has read all of them."""
        text = "".join(" ".join(question) + "\n" for question in questions)
        out, _ = self.process.communicate(text.encode(), timeout=100)
        assert self.process.returncode == 0, f"it ended with {self.process.returncode}"
        answers = [line.split() for line in out.decode().splitlines()]
        assert len(answers) == len(questions), f"{len(answers)} answers to {len(questions)}"
        return answers


class Differences:
    """What was compared, and what was not the same."""

    def __init__(self):
        self.count = 0
        self.shown = 0

    def compare(self, what, ours, theirs):
        self.count += 1
        if ours != theirs:
            self.shown += 1
            if self.shown <= 20:
                print(f"{what}\n  otel-c: {ours!r}\n  peer:   {theirs!r}")

    def finish(self, at_least):
        assert self.count >= at_least, f"only {self.count} comparisons"
        print(f"{self.count} comparisons, {self.shown} differences")
        sys.exit(1 if self.shown else 0)
