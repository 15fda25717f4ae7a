#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Doxygen's INPUT_FILTER: prints a header of include/otel with the marks that Doxygen wants and our
# comments do without. A comment in front of a declaration is its documentation, and also that of the
# functions that follow it without an empty line; one behind a member is the member's; the comment at
# the top is the header's, each "Threads:" a paragraph of it. Indented lines are code. Bodies, and
# names with a `_` at the end, are left out.
import glob
import itertools
import os
import re
import sys

TOKEN = re.compile(r"""
    (?P<blank>\n)
  | (?P<comment>/\*.*?\*/\n)
  | (?P<directive>\#(?:[^\n]*\\\n)*[^\n]*\n)
  | (?P<declarations>OTEL_(?:BEGIN|END)_DECLS\n)
  | (?P<inline>OTEL_INLINE[^;{]*)\{.*?^\}\n
  | (?P<aggregate>(?:typedef\ )?(?:struct|enum)[^;{(]*\{\n.*?^\}[^\n]*;\n)
  | (?P<declaration>[^;]*;[^\n]*\n)""", re.S | re.M | re.X)
LABEL = re.compile(r"([A-Z][a-z]+(?:, [a-z]+)*): +(?=\S)")


def known_names(directory):
    """What the headers declare, to which a text may be linked; what is called also with a "("."""
    code = "".join(re.sub(r"/\*.*?\*/|#if.*?$", "", open(path).read(), flags=re.S | re.M)
                   for path in glob.glob(directory + "/*.h"))
    names = re.findall(r"\b((?:otel|OTEL)_\w*[a-zA-Z0-9]\b)(\(?)", code)
    return {name for name, _ in names} | {name + "(" for name, is_call in names if is_call}


def marked(text, names):
    """A line of prose: nothing in it is a command, `words` are code, names are links."""
    def mark(match):
        quoted, called, name, other = match.groups()
        if quoted:
            return "<code>" + marked(quoted, names) + "</code>"
        if called in names:
            return f'@ref {called} "{called}"'
        return "\\" + other if other else ("#" if name in names else "") + (called or name)
    return re.sub(r"`([^`]+)`|\b(otel_\w+)(?=\()|\b((?:otel|OTEL)_\w+)|([\\@<>&#%\"])", mark, text)


def lines_of(comment):
    """The text of a comment, line by line, without what frames it."""
    inside = comment.strip()[2:-2].rstrip()
    return [re.sub(r"^ *\*( |$)", "", line) if at else line.strip()
            for at, line in enumerate(inside.split("\n"))]


def documentation(lines, names, labels=False):
    """Lines of a comment as Doxygen reads them."""
    out, in_code, in_label = [], False, False
    for at, line in enumerate(lines):
        label = LABEL.match(line) if labels else None
        item = not in_code and re.match(r" {1,3}- ", line)
        is_code = line.startswith("  ") and not item and not in_label
        if is_code != in_code and (is_code or line):
            block = "\n".join(itertools.takewhile(lambda l: l == "" or l[0] == " ", lines[at:]))
            language = ".c" if ";" in block else ".unparsed"
            out.append(f"@code{{{language}}}" if is_code else "@endcode")
            in_code = is_code
        if in_code:
            out.append(line)
            continue
        in_label = bool(label or item or (in_label and line))
        if label:
            out += ["@par " + label.group(1), marked(line[label.end():], names)]
        else:
            out.append(marked(line.strip() if in_label else line, names))
    return "\n".join(out + ["@endcode"] * in_code)


def members(text, names):
    """The comments inside a struct or an enumeration."""
    def behind(match):
        return match.group(1) + "/**< " + documentation([" ".join(
            line.strip() for line in lines_of(match.group(2)))], names) + " */"

    def before(match):
        indent, comment, first, is_group = match.groups()
        lines = lines_of(comment)
        if not is_group:
            return f"{indent}/** {documentation(lines, names)} */\n{first}"
        title, rest = (re.split(r"[.:] ", " ".join(lines), maxsplit=1) + [""])[:2]
        return f"{indent}/** @name {marked(title.rstrip('.'), names)}\n\n{marked(rest, names)} */\n" \
               f"{indent}/** @{{ */\n{first}"

    paragraphs = []
    for paragraph in text.split("\n\n"):
        # In front of a member that has a comment of its own, it is the title of the paragraph.
        paragraph = re.sub(r"^( +)(/\*(?:.(?!\*/))*.\*/)\n([^;]*;)(?=( */\*)?)", before, paragraph,
                           flags=re.S | re.M)
        if "/** @{ */" in paragraph:
            paragraph = re.sub(r"(?=(\n\}[^\n]*;\n)?\Z)", "\n/** @} */", paragraph, count=1)
        paragraphs.append(re.sub(r"(?<=[;,\w}]) ( *)(/\*(?!\*).*?\*/)", behind, paragraph, flags=re.S))
    return "\n\n".join(paragraphs)


def sentence_for(code, name, names):
    """What the kind of a declaration says of it: a macro of options, a form of another call."""
    made = re.search(r"define \w+\(\.\.\.\).*sizeof\((\w+)\)", code, re.S)
    if made:
        return f"Makes an #{made.group(1)} of designated initializers (.member = value, ...), with " \
               "its <code>size</code>; in C only.\n"
    if name and name[-2:] in ("_p", "_n") and name[:-2] + "(" in names:
        return f"As #{name[:-2]}, " + ("by pointers, and " if name[-2:] == "_p" else "") + \
               "with the lengths of texts.\n"
    return ""


def filtered(text, names):
    current, used = None, False  # the comment that holds, and whether a declaration has it
    for token in TOKEN.finditer(text):
        kind, code = token.lastgroup, token.group(token.lastgroup)
        if kind == "comment":
            lines = lines_of(code)
            title = re.match(r"(otel/\w+\.h) - (.*)", lines[0])
            if title:
                end = lines.index("") if "" in lines else 1  # of the sentence that is the title
                brief = " ".join([title.group(2)] + lines[1:end])
                yield f"/** @file {title.group(1)}\n@brief {marked(brief, names)}\n@code{{.c}}\n" \
                      f"#include <{title.group(1)}>\n@endcode\n" \
                      f"{documentation(lines[end:], names, True)} */\n"
            current, used = (None if title else lines), False
            continue
        if kind in ("blank", "declarations"):
            if current and len(current) > 2 and not used:  # stands alone: a part of the header's
                yield f"/** @file\n@details\n<b>{marked(current[0].strip('- '), names)}</b>\n" \
                      f"{documentation(current[1:], names)} */\n"
            current = None
        name = re.search(r"#define (\w+)" if kind == "directive" else r"(\w+)(?=[(;])", code)
        if kind in ("blank", "declarations") or (name and name.group(1).endswith("_")):
            yield "\n"
            continue
        made = sentence_for(code, name and name.group(1), names)
        if made or (current and (name or kind != "directive")):
            yield f"/** {made}{documentation(current or [], names)} */\n"
            used = True
        if kind == "inline":
            yield code.rstrip() + ";\n"
        elif kind == "aggregate":
            yield members(code, names)
        elif kind == "directive":
            yield re.sub(r"(define \w+\([^)]*\)).*", r"\1\n", code, flags=re.S)
        else:
            yield re.sub(r"; *(/\*.*)", lambda m: "; /**< " + documentation(
                lines_of(m.group(1)), names) + " */", code)


if __name__ == "__main__":
    with open(sys.argv[1]) as header:
        sys.stdout.write("".join(filtered(header.read(), known_names(os.path.dirname(sys.argv[1])))))
