#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in other languages make the trace of examples/hello.c: the same lines of OTLP/JSON but
for ids, times and what the process is.

    languages.py BUILD LANGUAGE      cpp, python, lua, go or rust, with the shared libraries of BUILD

What is compiled goes the way that the example's head says, with BUILD in the place of pkg-config.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CHANGES = {"traceId", "spanId", "startTimeUnixNano", "endTimeUnixNano"}


def need(*commands):
    """The first of the commands that is there; without one the test is skipped, but never in CI."""
    for command in commands:
        if shutil.which(command):
            return command
    print(f"languages.py: {commands[0]} is not installed", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") else 77)


def command_of(language, libraries, out):
    """What runs the example, compiled into `out` where that is needed."""
    include, source, program = EXAMPLES.parent / "include", EXAMPLES / "ffi", out / "hello"
    if language == "python":
        return [sys.executable, str(source / "hello.py")]
    if language == "lua":
        return [need("luajit"), str(source / "hello.lua")]
    environment = dict(os.environ)
    if language == "cpp":
        compile_it = [need("g++", "clang++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{include}",
                      str(source / "hello.cpp"), "-o", str(program), f"-L{libraries}", "-lotel", "-lotel-sdk",
                      "-lotel-api"]
    elif language == "rust":
        compile_it = [need("rustc"), str(source / "hello.rs"), "-o", str(program), f"-L{libraries}"]
    else:
        need("go")
        need("pkg-config")
        (out / "otel.pc").write_text(f"Name: otel\nDescription: of a build directory\nVersion: 0\nCflags: -I{include}\n"
                                     f"Libs: -L{libraries} -lotel -lotel-sdk -lotel-api\n")
        environment["PKG_CONFIG_PATH"] = str(out)
        # Go's cache does not look at what pkg-config answers: the source has to be another one.
        (out / "hello.go").write_text((source / "hello.go").read_text() + f"\n// {libraries}\n")
        compile_it = ["go", "build", "-o", str(program), str(out / "hello.go")]
    subprocess.run(compile_it, check=True, env=environment)
    return [str(program)]


def without_changes(node):
    if isinstance(node, list):
        return [without_changes(item) for item in node]
    if isinstance(node, dict):
        return {key: without_changes(item) for key, item in node.items() if key not in CHANGES}
    return node


def trace_of(command, libraries):
    """What a program exports, as text; its resource is only that it is called hello."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment.update(OTEL_TRACES_EXPORTER="otlp/stdout", OTEL_SERVICE_NAME="hello",
                       LD_LIBRARY_PATH=str(libraries))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    lines = []
    for line in done.stdout.splitlines():
        request = without_changes(json.loads(line))
        for resource in request["resourceSpans"]:
            resource["resource"] = [attribute for attribute in resource["resource"]["attributes"]
                                    if attribute["key"] == "service.name"]
        lines.append(json.dumps(request, indent=1, sort_keys=True))
    return "\n".join(lines)


def main():
    libraries, language = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    expected = trace_of([str(libraries / "examples/hello")], libraries)
    assert '"charge"' in expected and '"payment.cents"' in expected, expected
    with tempfile.TemporaryDirectory() as out:
        made = trace_of(command_of(language, libraries, pathlib.Path(out)), libraries)
    if made != expected:
        sys.exit(f"{language} makes another trace than hello.c:\n{made}\nand not\n{expected}")
    print(f"{language}: the trace of hello.c")


main()
