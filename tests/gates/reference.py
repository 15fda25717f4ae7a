#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The reference (cmake/reference) is made without a warning of Doxygen or of man; each public function
# is on a page of it, with a sentence; and each header says what holds for all of its functions.
#
#   reference.py BUILD
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
LABELS = ("Threads", "Signals", "Errors", "Source")
WITHOUT_LABELS = ("otel.h",)  # declares nothing
NOT_TO_CALL = {"otel_profile_trampoline"}  # a name for profilers


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            print(f"reference.py: {command} is not installed", file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") else 77)


def public_names():
    """What the libraries export, and the inline functions."""
    names = set()
    for path in glob.glob(SOURCE + "/cmake/otel*.map"):
        names.update(re.findall(r"^ +(otel_\w+);", open(path).read(), re.M))
    for path in glob.glob(SOURCE + "/include/otel/*.h"):
        names.update(re.findall(r"^OTEL_INLINE [^(]*?(\w+)\(", open(path).read(), re.M))
    return {name for name in names if not name.endswith("_")} - NOT_TO_CALL


def text_of(element):
    return "".join("".join(part.itertext()) for part in element
                   if part.tag in ("briefdescription", "detaileddescription")).strip()


def wrong_of(xml, names):
    """What is wrong with a reference, as far as Doxygen's XML says it."""
    sentences = {}
    for path in glob.glob(xml + "/*_8h.xml"):
        header = ElementTree.parse(path).getroot().find("compounddef")
        name = header.find("compoundname").text
        titles = " ".join(title.text for title in header.iterfind("detaileddescription//title"))
        for label in LABELS if name not in WITHOUT_LABELS else ():
            if label.lower() not in titles.lower():
                yield f"include/otel/{name}:2: has no paragraph \"{label}:\""
        for member in header.iter("memberdef"):
            sentences[member.find("name").text] = text_of(member)
    for name in sorted(names):
        if not re.search(r"\w.*[.:]", sentences.get(name, ""), re.S):
            yield f"include/otel: {name} is {'without a sentence' if name in sentences else 'missing'}"


def wrong_pages(directory, names):
    for name in sorted(names):
        if not os.path.exists(f"{directory}/{name}.3"):
            yield f"{name}.3: there is no such man page"
    for path in sorted(glob.glob(directory + "/*.3")):
        if open(path).read().startswith(".so "):
            continue
        said = subprocess.run(["man", "--warnings", "-l", path], stdout=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8")).stderr
        if said:
            yield f"{os.path.basename(path)}: {said.splitlines()[0]}"


def finds_what_is_planted(doxyfile, build):
    """A header with a function that says nothing, and without a paragraph: two complaints."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(SOURCE + "/include/otel", work + "/include/otel")
        with open(work + "/include/otel/base.h", "r+") as header:
            text = header.read().replace("Threads:", "Thread:", 1)
            text = text.replace("OTEL_END_DECLS\n#", "OTEL_API void otel_planted(void);\n#")
            header.seek(0)
            header.write(text)
        text = open(doxyfile).read().replace(SOURCE + "/include", work + "/include")
        text = text.replace(build + "/reference", work)
        subprocess.run(["doxygen", "-"], input=text, text=True, check=True)
        found = list(wrong_of(work + "/xml", public_names() | {"otel_planted"}))
        return sorted(found) == ["include/otel/base.h:2: has no paragraph \"Threads:\"",
                                 "include/otel: otel_planted is without a sentence"]


def main():
    build = os.path.abspath(sys.argv[1])
    need("doxygen", "man")
    subprocess.run(["cmake", "--build", build, "--target", "reference"], check=True,
                   stdout=subprocess.DEVNULL)
    names = public_names()
    wrong = open(build + "/reference/warnings").read().splitlines()
    wrong += wrong_of(build + "/reference/xml", names)
    wrong += wrong_pages(build + "/reference/man/man3", names)
    if not wrong and not finds_what_is_planted(build + "/cmake/reference/Doxyfile", build):
        wrong.append("reference.py does not find what is planted")
    for line in wrong:
        print(line.replace(SOURCE + "/", ""), file=sys.stderr)
    if wrong:
        sys.exit(f"reference.py: {len(wrong)} wrong")
    print(f"reference.py: ok, {len(names)} functions")


main()
