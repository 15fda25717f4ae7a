#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What compiled programs know of the public surface is as tests/gates/abi.list has it, or more.

The list has a line for each exported symbol with its library, version node and type, and for each
member of a public struct, each enumerator and each type of a function. The symbols are those of the
built libraries; the types are read by libabigail's abidw out of the debug information of a probe
that includes all public headers. A line of the list that is not true any more is a break. What
comes in addition is none, but a struct may become longer only as docs/ABI.md says.

    abi.py BUILD             compare
    abi.py --update BUILD    write the list anew
    abi.py --selftest BUILD  plant breaks and additions in a copy of the headers
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(os.environ.get("OTEL_GATE_ROOT", pathlib.Path(__file__).parents[2]))
LIST = ROOT / "tests/gates/abi.list"
LIBRARIES = ["otel-api", "otel-sdk", "otel-otlp", "otel", "otel-functions", "otel-config",
             "otel-profiling"]
COMPILE = "gcc -std=c11 -D_GNU_SOURCE -g -fno-eliminate-unused-debug-types -shared -fPIC".split()


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols_of(build):
    """Name: library and version node, of the libraries that this build has."""
    found = {}
    for library in LIBRARIES:
        path = pathlib.Path(build) / f"lib{library}.so"
        if not path.exists():
            continue
        for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions",
                              str(path)).splitlines():
            name, _, node = line.split()[-1].partition("@")
            if name.startswith("otel_"):
                found[name] = (library, node.lstrip("@"))
    return found


class Surface:
    """The types of the headers below `include`, and of these names."""

    def __init__(self, include, names):
        headers = sorted(p for p in (include / "otel").glob("*.h") if "semconv" not in p.name)
        text = "".join(p.read_text() for p in headers)
        self.declared = [n for n in sorted(names) if re.search(rf"\b{n}\b", text)]
        probe = "".join(f"#include <otel/{p.name}>\n" for p in headers)
        probe += "".join(f"__typeof__({n}) *{n}_is;\n" for n in self.declared)
        with tempfile.TemporaryDirectory() as work:
            source, library = f"{work}/probe.c", f"{work}/probe.so"
            pathlib.Path(source).write_text(probe)
            subprocess.run([*COMPILE, f"-I{include}", source, "-o", library], check=True)
            corpus = xml.fromstring(output_of("abidw", "--headers-dir", str(include),
                                              "--load-all-types", "--no-show-locs", library))
        self.elements = list(corpus.iter())
        self.types = {e.get("id"): e for e in self.elements if e.get("id")}
        self.spelled = {}

    def spell(self, type_id):
        """A type as text. The name of a struct, an enum or a typedef stands for it."""
        if type_id not in self.spelled:
            self.spelled[type_id] = "..."  # a type that contains itself
            self.spelled[type_id] = self.spell_new(self.types[type_id])
        return self.spelled[type_id]

    def spell_new(self, e):
        if e.tag == "pointer-type-def":
            return self.spell(e.get("type-id")) + "*"
        if e.tag == "qualified-type-def":
            words = [w for w in ("const", "volatile", "restrict") if e.get(w) == "yes"]
            return " ".join([self.spell(e.get("type-id")), *words])
        if e.tag == "array-type-def":
            sizes = "".join(f"[{s.get('length')}]" for s in e.findall("subrange"))
            return self.spell(e.get("type-id")) + sizes
        if e.tag == "function-type":
            taken = ", ".join("..." if p.get("is-variadic") else self.spell(p.get("type-id"))
                              for p in e.findall("parameter"))
            return f"{self.spell(e.find('return').get('type-id'))}({taken})"
        if e.get("is-anonymous") == "yes":
            return e.tag.partition("-")[0] + " { " + "; ".join(m for m in self.members(e)) + " }"
        return e.get("name")

    def members(self, e):
        for member in e.findall("data-member"):
            variable = member.find("var-decl")
            at = int(member.get("layout-offset-in-bits", "0")) // 8
            yield f"{at} {self.spell(variable.get('type-id'))} {variable.get('name')}"
        for value in e.findall("enumerator"):
            yield f"{value.get('name')} = {value.get('value')}"

    def lines(self, symbols):
        """All of it, sorted."""
        types = {e.get("name")[:-3]: self.types[self.types[e.get("type-id")].get("type-id")]
                 for e in self.elements
                 if e.tag == "var-decl" and (e.get("elf-symbol-id") or "").endswith("_is")}
        found = set()
        for name, (library, node) in symbols.items():
            # The type of what is in no header is nothing that a program can know.
            of = self.spell(types[name].get("id")) if name in types else "-"
            found.add(f"symbol {name} {library} {node} {of}")
        for e in self.elements:
            name = e.get("name") or ""
            if e.tag == "enum-decl":
                public = name if e.get("is-anonymous") != "yes" else "-"
                found |= {f"enum {public} {m}" for m in self.members(e) if m.startswith("OTEL_")}
            elif e.tag in ("class-decl", "union-decl") and name.startswith("otel_") and \
                    e.get("is-declaration-only") != "yes":
                found.add(f"size {name} {int(e.get('size-in-bits')) // 8}")
                found |= {f"member {name} {m}" for m in self.members(e)}
            elif e.tag == "typedef-decl" and name.startswith("otel_"):
                if self.spell(e.get("type-id")) != name:
                    found.add(f"type {name} {self.spell(e.get('type-id'))}")
        return sorted(found)


def breaks(old, new):
    """The lines of the list that are not true any more, and what may not come in addition."""
    before, now = set(old), set(new)
    built = {line.split()[2] for line in new if line.startswith("symbol ")}
    sizes = {line.split()[1]: int(line.split()[2]) for line in new if line.startswith("size ")}
    fixed = {line.split()[1] for line in new if line.endswith(" reserved")}

    def grows(name):
        """Only pointers to it are handed over, and it says how long it is."""
        return f"member {name} 0 size_t size" in now and name not in fixed

    def keeps_size(name):
        return f"size {name} {sizes.get(name)}" in before

    uses_room = set()
    for line in old:
        kind, name, rest = line.split(" ", 2)
        if line in now or (kind == "symbol" and rest.split()[0] not in built):
            continue
        if kind == "size" and grows(name) and sizes.get(name, 0) > int(rest):
            continue
        if kind == "enum" and re.match(r"OTEL_\w+_REASON_COUNT ", rest):
            continue
        if kind == "member" and rest.endswith(" reserved") and keeps_size(name):
            uses_room.add(name)
            continue
        yield line
    for line in new:  # the padding of a struct has anything in it
        kind, name, _ = line.split(" ", 2)
        if kind == "member" and line not in before and keeps_size(name) and name not in uses_room:
            yield f"(without) {line}"


def compare(old, new):
    wrong = list(breaks(old, new))
    for line in wrong:
        print(f"tests/gates/abi.list: not true any more: {line}", file=sys.stderr)
    return wrong


BREAKS = [  # file, text, what it becomes
    ("context.h", "uint64_t opaque[4];", "uint64_t opaque[5];"),
    ("value.h", "    size_t key_length;", "    uint32_t key_length;"),
    ("value.h", "    const char *key;\n    otel_value value;",
     "    otel_value value;\n    const char *key;"),
    ("exporter.h", "    size_t size;      /* sizeof(otel_exporter) */",
     "    size_t size;\n    int more;"),
    ("exporter.h", "    const void *reserved[4]; /* NULL */\n} otel_exporter;",
     "    const void *reserved[4];\n    int more;\n} otel_exporter;"),
    ("base.h", "OTEL_ERROR_NO_MEMORY = 2", "OTEL_ERROR_NO_MEMORY = 12"),
    ("trace.h", "    OTEL_SPAN_KIND_CONSUMER = 4\n", "    OTEL_SPAN_KIND_OTHER = 4\n"),
    ("sampler.h", "OTEL_SAMPLING_ROOM = 16", "OTEL_SAMPLING_ROOM = 17"),
    ("trace.h", "otel_span_cancel(otel_span span)", "otel_span_cancel(otel_span_ref span)"),
    ("trace.h", "void otel_span_cancel(", "int otel_span_cancel("),
    ("baggage.h", "bool otel_baggage_visitor(void *state, ", "void otel_baggage_visitor(void *state, "),
    ("trace.h", "    uint64_t start_ns; /* Unix", "    int64_t start_ns; /* Unix"),
    ("trace.h", "    size_t link_count;\n", ""),
    ("exporter.h", "    bool boolean;\n", "    bool boolean;\n    bool more;\n"),
    ("trace.h", "} otel_span_options;", "    int more;\n} otel_span_options;"), # behind a bool
]
ADDITIONS = [
    ("trace.h", "} otel_span_options;", "    uint64_t more;\n} otel_span_options;"),
    ("sdk.h", "} otel_stats;", "    uint64_t more;\n} otel_stats;"),
    ("base.h", "OTEL_ERROR_UNSUPPORTED = 8 ", "OTEL_ERROR_UNSUPPORTED = 8, OTEL_ERROR_MORE = 9 "),
    ("exporter.h", "    OTEL_DROP_REASON_COUNT\n",
     "    OTEL_DROP_MORE,\n    OTEL_DROP_REASON_COUNT\n"),
    ("processor.h", "    const void *reserved[4]; /* NULL */",
     "    void (*more)(void);\n    const void *reserved[3];"),
    ("base.h", "OTEL_END_DECLS\n#endif\n", "typedef struct otel_more { int more; } otel_more;\n"
     "OTEL_API otel_more otel_make_more(int);\nOTEL_END_DECLS\n#endif\n"),
]


def selftest(build):
    symbols = symbols_of(build)
    whole = Surface(ROOT / "include", symbols).lines(symbols)
    failed = 0
    for is_break, plants in ((True, BREAKS), (False, ADDITIONS)):
        for name, text, planted in plants:
            with tempfile.TemporaryDirectory() as work:
                include = pathlib.Path(work) / "include"
                shutil.copytree(ROOT / "include", include)
                header = include / "otel" / name
                before = header.read_text()
                after = planted.join(before.rsplit(text, 1))
                header.write_text(after)
                found = list(breaks(whole, Surface(include, symbols).lines(symbols)))
            if after == before or bool(found) != is_break:
                print(f"abi.py: {name}: {text!r} to {planted!r}: found {found}", file=sys.stderr)
                failed += 1
    gone = dict(symbols)
    library, node = gone.pop("otel_span_end_n")
    for other in (gone, symbols | {"otel_span_end_n": (library, node + "9")}):
        failed += len(list(breaks(whole, Surface(ROOT / "include", other).lines(other)))) != 1
    return failed


def main(arguments):
    mode = arguments.pop(0) if arguments[0].startswith("--") else "--compare"
    for tool in ("abidw", "gcc", "nm"):
        if shutil.which(tool) is None:
            print(f"abi.py: {tool} is not installed", file=sys.stderr)
            return 1 if os.environ.get("CI") else 77
    if mode == "--selftest":
        return selftest(arguments[0]) != 0
    symbols = symbols_of(arguments[0])
    lines = Surface(ROOT / "include", symbols).lines(symbols)
    if mode == "--update":
        LIST.write_text("\n".join(["# SPDX-License-Identifier: Apache-2.0", *lines, ""]))
        return 0
    wrong = compare(LIST.read_text().splitlines()[1:], lines)
    if not wrong:
        print(f"abi.py: ok, {len(lines)} lines")
    return bool(wrong)


sys.exit(main(sys.argv[1:]))
