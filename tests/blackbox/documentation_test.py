# SPDX-License-Identifier: Apache-2.0
"""Every code block of the documents, and every command in the heads of the examples, works as it stands.

Blocks of C and C++ compile, and run where they have a main; sh runs line by line in a scratch
directory, with what is installed on the paths and otel-view at localhost:4318; yaml passes
otel_check_file; cmake configures. Blocks of no language are pictures. What cannot be so as it stands
has a line before it that readers do not see:

    <!-- not run: why, and which test does it instead -->
    <!-- frame: function -->              statements: goes into a function
    <!-- frame: function; given: int x; -->    the same, and with these declarations before it
    <!-- frame: file; given: ... -->      declarations that want others before them
    <!-- frame: file, then function -->   as far as the last "}" at the left edge a file
    <!-- frame: part -->                  yaml: without its first lines

A line "..." is left out. Paths such as /etc/shop/otel.yaml are below the scratch directory.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness

DOCUMENTS = harness.PREFIX / "share/doc/otel-c"
LANGUAGES = {"", "c", "cpp", "sh", "yaml", "cmake"}
FENCE = re.compile(r"^ *```(\w*)$")
MARKER = re.compile(r"^<!-- (not run|frame): (.*?)(?:; given: (.*))? -->$")
FRAMES = {"c": {"function", "file", "file, then function"}, "cpp": {"function", "file"}, "yaml": {"part"}}
ERRORS = ["-Werror=implicit-int", "-Werror=implicit-function-declaration", "-Werror=int-conversion",
          "-Werror=incompatible-pointer-types"]
HEADERS = ["stdio.h", "stdlib.h", "string.h", "sys/epoll.h"] + sorted(
    f"otel/{path.name}" for path in (harness.PREFIX / "include/otel").glob("*.h")
    if not path.name.startswith("semconv"))
PROGRAMS = ["shop", "my-program"]  # what documents call the reader's program
PLACES = re.compile(r"/(?=(?:etc|srv|var/spool|var/log|var/tmp)/)")

# Lines in the heads of examples that no test can run to an end.
HEADS_NOT_RUN = {
    "tail -F access.log": "follows a file for ever; example.from_log has lines of its own",
    "./prefork PORT": "serves until SIGTERM; --demo is the same",
    "./service stock": "serves until SIGTERM; --demo has both services",
    "./service shop": "serves until SIGTERM; --demo has both services",
    "./connection_process PATH": "serves until SIGTERM; integration.daemons has it",
    "./drop_privileges USER": "wants a user and a file; integration.daemons has them",
    "curl http://127.0.0.1": "asks those",
    "OTEL_TRACES_EXPORTER=console ./thread_pool 7000": "serves until it is ended; --demo is the same",
    "OTEL_TRACES_EXPORTER=console ./relay": "serves until SIGTERM; integration.w3c has both",
    "curl 127.0.0.1:8080/relay": "asks it",
    "OTEL_TRACES_EXPORTER=console ./threadless_epoll": "serves until SIGTERM; --demo is the same",
}


class Block:
    def __init__(self, document, line, language, text, kind=None, what=None, given=None):
        self.place = f"{document.relative_to(DOCUMENTS)}:{line}"
        self.language, self.text = language, text
        self.kind, self.what, self.given = kind, what, given or ""


def blocks_of(document):
    """The blocks of a document, and the markers that no block follows."""
    lines = document.read_text().split("\n")
    blocks, marker, stray, at = [], None, [], 0
    while at < len(lines):
        fence, found = FENCE.match(lines[at]), MARKER.match(lines[at])
        if fence:
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
            indent = len(lines[at]) - len(lines[at].lstrip())
            text = "\n".join(line[indent:] for line in lines[at + 1:end]) + "\n"
            blocks.append(Block(document, at + 1, fence[1], text, *(marker or ())))
            at, marker = end, None
        elif found:
            marker = found.groups()
        elif marker:
            stray.append(f"{document.name}:{at}: a marker without a block")
            marker = None
        at += 1
    return blocks, stray


def head_commands(source):
    """The commands in the first comment of an example that follows the licence, and what they print."""
    head = re.findall(r"/\*(.*?)\*/", source.read_text(), re.S)[1]
    lines = [re.sub(r"^ \* ?", "", line) for line in head.replace("\\\n *", "\\\n * ").split("\n")]
    text = re.sub(r"\\\n +", " ", "\n".join(lines))
    commands = re.findall(r"^    ((?:cc|mkdir|export|tail|curl|otel-|OTEL_|\./).*)$", text, re.M)
    # What follows a wide gap is a remark, what is in brackets may be left out.
    commands = [re.sub(r" \[.*?\]", "", re.split(r" {3,}", command)[0]) for command in commands]
    printed = re.search(r"^(?:prints|draws) .*?(?:\n\n|\Z)", text, re.M | re.S)
    return commands, re.findall(r'"([^"\n]+)"', printed[0]) if printed else []


class Documentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="documentation-", dir=harness.PROGRAMS))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        hello = DOCUMENTS / "examples/hello.c"
        cls.program = harness.compile_c(hello, cls.scratch / "program")
        cls.checker = cls.scratch / "checker"
        (cls.scratch / "checker.c").write_text(
            "#include <otel/config.h>\nint main(int n, char **a) "
            "{ return n != 2 || otel_check_file(a[1]) != OTEL_OK; }\n")
        harness.compile_c(cls.scratch / "checker.c", cls.checker, package="otel-config")
        cls.alone = ["unshare", "-rn"]  # with a loopback of its own, where it may
        if subprocess.run([*cls.alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            cls.alone = []

    def folder(self):
        """A directory as a reader may have it: sources, a program to run, a configuration."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        for source in [*DOCUMENTS.glob("examples/*.c"), *DOCUMENTS.glob("examples/*/*.[ch]")]:
            shutil.copy(source, folder)
        for name in PROGRAMS:
            shutil.copy(DOCUMENTS / "examples/hello.c", folder / f"{name}.c")
            shutil.copy(self.program, folder / name)
        (folder / "etc/shop").mkdir(parents=True)
        shutil.copy(DOCUMENTS / "examples/config/batch.yaml", folder / "etc/shop/otel.yaml")
        return folder

    def shell(self, text, folder=None):
        """Runs lines of sh; a receiver listens where the defaults say. Gives status and output."""
        folder = folder or self.folder()
        script = folder / "script"
        script.write_text(
            ("python3 -c 'import fcntl, socket, struct\n"
             "fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh\", b\"lo\", 65))'\n" if self.alone else "")
            + "otel-view >view.out 2>view.err &\n"
            "until grep -q 'listening on' view.err || ! kill -0 $! 2>/dev/null; do sleep 0.05; done\n"
            "set -e\n" + PLACES.sub(f"{folder}/", text))
        env = dict(harness.environment(), HOME=str(folder),
                   PKG_CONFIG_PATH=str(harness.LIBRARIES / "pkgconfig"))
        env["PATH"] = f"{harness.TOOLS}:{env['PATH']}"
        with open(folder / "output", "w+") as output:
            shell = subprocess.Popen([*self.alone, "bash", str(script)], cwd=folder, env=env, stdout=output,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     start_new_session=True)
            try:
                status = shell.wait(harness.RUN_SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
                    shell.wait()
                    while True:  # until the receiver is gone, too, and its port is free for the next block
                        os.killpg(shell.pid, signal.SIGKILL)
                        time.sleep(0.01)
            output.seek(0)
            return status, output.read()

    def compiles(self, text, language):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        source = folder / ("block.c" if language == "c" else "block.cc")
        source.write_text(text)
        compiler = ["cc", *ERRORS] if language == "c" else ["c++"]
        done = subprocess.run([*compiler, f"-I{harness.PREFIX / 'include'}", "-fsyntax-only", str(source)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def framed(self, block):
        text = re.sub(r"^ *\.\.\.$", "", block.text, flags=re.M)
        start = "#define _GNU_SOURCE\n" + "".join(f"#include <{header}>\n" for header in HEADERS)
        start += re.sub(r"(#include <[^>]*>)", r"\1\n", block.given) + "\n"
        if block.what == "file":
            return start + text
        includes = "".join(re.findall(r"^#.*\n", text, re.M))
        text = re.sub(r"^#.*\n", "", text, flags=re.M)
        file, function = "", text
        if block.what == "file, then function":
            cut = text.rindex("\n}\n") + 3
            file, function = text[:cut], text[cut:]
        return f"{includes}{start}{file}\nvoid block(void);\nvoid block(void)\n{{\n{function}}}\n"

    def check_c(self, block):
        if block.kind is None and re.search(r"^int main\(", block.text, re.M):
            folder = self.folder()
            (folder / "block.c").write_text(block.text)
            harness.compile_c(folder / "block.c", folder / "block")
            return self.shell("OTEL_TRACES_EXPORTER=console ./block\n", folder)
        status, said = self.compiles(block.text, block.language)
        if block.kind is None:
            return status, said
        self.assertNotEqual(status, 0, "the marker is not needed")
        return self.compiles(self.framed(block), block.language)

    check_cpp = check_c

    def check_sh(self, block):
        return self.shell(block.text)

    def check_yaml(self, block):
        file = self.scratch / "block.yaml"
        file.write_text(('file_format: "1.0"\n' if block.what == "part" else "") + block.text)
        done = harness.run(str(self.checker), str(file))
        return done.returncode, done.stdout + done.stderr

    def check_cmake(self, block):
        folder = self.folder()
        names = set(re.findall(r"\((\S+) PRIVATE", block.text))
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(reader C)\n"
            + "".join(f"add_executable({name} {name}.c)\n" for name in sorted(names)) + block.text)
        return self.shell(f"cmake -B build -DCMAKE_PREFIX_PATH={harness.PREFIX}\ncmake --build build\n", folder)

    def check(self, block):
        self.assertIn(block.language, LANGUAGES)
        if block.kind == "not run":
            self.assertGreater(len(block.what), 10, "why?")
            return
        if block.kind == "frame":
            self.assertIn(block.what, FRAMES.get(block.language, ()), "no such frame")
        if block.language:
            status, said = getattr(self, f"check_{block.language}")(block)
            self.assertEqual(status, 0, f"\n{block.text}\n{said}")

    def test_blocks(self):
        documents = [DOCUMENTS / "README.md", *sorted(DOCUMENTS.glob("docs/*.md"))]
        count = 0
        for document in documents:
            blocks, stray = blocks_of(document)
            self.assertEqual(stray, [])
            for block in blocks:
                with self.subTest(block.place):
                    self.check(block)
                count += bool(block.language)
        self.assertGreater(count, 40, "the documents are there")

    def test_heads_of_examples(self):
        unused = dict(HEADS_NOT_RUN)
        for source in sorted([*DOCUMENTS.glob("examples/*.c"), *DOCUMENTS.glob("examples/*/*.c")]):
            commands, printed = head_commands(source)
            self.assertTrue(commands, source)
            if "libuv" in commands[0] and subprocess.run(["pkg-config", "libuv"], check=False).returncode:
                continue
            lines = []
            for command in commands:
                reason = next((start for start in HEADS_NOT_RUN if command.startswith(start)), None)
                unused.pop(reason, None)
                if reason is None:
                    lines.append(re.sub(r"\b[A-Z]{4,}$", "3", command))
            with self.subTest(source.name):
                status, said = self.shell("\n".join(lines) + "\n")
                self.assertEqual(status, 0, f"\n{lines}\n{said}")
                for text in printed:
                    self.assertIn(text, said)
        self.assertEqual(unused, {}, "lines that no example has any more")


if __name__ == "__main__":
    harness.main()
