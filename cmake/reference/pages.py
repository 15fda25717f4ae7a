#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
#   pages.py DIRECTORY
#
# Makes of Doxygen's man pages in DIRECTORY what can be installed: otel_trace.h.3 for a header, a page
# for a large struct, and for every other name one that leads there. Pages of members and directories
# go, and so does the date.
import glob
import os
import re
import sys


def escaped(match):
    """An argument of a request: a `"` inside of it would end it."""
    return match.group(1) + match.group(2).replace('"', r"\(dq") + '"'


def corrected(page):
    page = re.sub(r"^\.so man3/(\w+\.h\.3)", r".so man3/otel_\1", page)
    page = re.sub(r'^\.TH "(?:otel/)?([^"]*)" 3 "[^"]*"',
                  lambda m: f'.TH "{"otel_" * m.group(1).endswith(".h")}{m.group(1)}" 3 ""', page)
    page = re.sub(r"(?<=\.SH NAME\n)otel/", "otel_", page)
    page = re.sub(r'^\.SH SYNOPSIS\n.*?(#include[^\n]*).*?\.fi\n',
                  r".SH SYNOPSIS\n.nf\n\1\n.fi\n.SH DESCRIPTION\n", page, flags=re.S | re.M)
    return re.sub(r'^(\.(?:RI|S[SH]|TP) ")(.*)"$', escaped, page, flags=re.M)


for path in glob.glob(os.path.join(sys.argv[1], "*")):
    directory, name = os.path.split(path)
    with open(path) as file:
        page = file.read()
    os.remove(path)
    if name.endswith(".h.3"):
        name = "otel_" + name
    if re.match(r"(otel|OTEL)_", name):
        with open(os.path.join(directory, name), "w") as file:
            file.write(corrected(page))
