# SPDX-License-Identifier: Apache-2.0
"""Where otel-c can be mutated, and how: the places are found by clang, the sources rewritten as text.

A mutant replaces the text of one expression: `a < b` becomes
`(OTELI_MUTANT(17) ? ((a) <= (b)) : (a < b))`, and a statement `f(x)` becomes
`(OTELI_MUTANT(18) ? (void)0 : (void)(f(x)))`, so that one build has them all. Only expressions in
bodies of functions whose text stands in the file itself are taken, and none that has to be constant.
"""
import collections
import pathlib
import re

from clang import cindex
from clang.cindex import CursorKind as Kind, TypeKind

FOLDERS = ("api", "sdk", "common", "exporters/otlp")

Mutant = collections.namedtuple("Mutant", "file function operator start end before after unit line")

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
               "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "*=": "/="}
BITS = {"|": "&", "&": "|", "^": "|", "|=": "&=", "&=": "|=", "^=": "|="}
SHIFTS = ("<<", ">>", "<<=", ">>=")
INTEGERS = {getattr(TypeKind, name) for name in
            "BOOL CHAR_U UCHAR USHORT UINT ULONG ULONGLONG CHAR_S SCHAR SHORT INT LONG LONGLONG ENUM".split()}
STATEMENTS = {Kind.COMPOUND_STMT, Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.DO_STMT,
              Kind.CASE_STMT, Kind.DEFAULT_STMT, Kind.LABEL_STMT}
# What is constant, or what is only about types.
CONSTANT = {Kind.STRUCT_DECL, Kind.UNION_DECL, Kind.ENUM_DECL, Kind.STATIC_ASSERT,
            Kind.CXX_UNARY_EXPR, Kind.GENERIC_SELECTION_EXPR, Kind.ASM_STMT, Kind.TYPEDEF_DECL}
# The arguments of these are no code of the product, or have to be constant.
LEFT_ALONE = {"assert", "offsetof"}
# What these return is compared with 0, so that the order of their arguments changes nothing.
SYMMETRIC = {"strcmp", "strncmp", "strcasecmp", "strncasecmp", "memcmp"}


class File:
    """The text of one file, and the spans of it that the preprocessor keeps from us."""

    def __init__(self, path):
        self.bytes, self.defined, self.left_alone = pathlib.Path(path).read_bytes(), [], []

    def text(self, start, end):
        return self.bytes[start:end].decode()


def inside(spans, start, end):
    return any(first <= start and end <= last for first, last in spans)


def one_argument(text):
    """Whether a text is one expression, and not the end of one argument and the start of the next."""
    depth = 0
    for sign in re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])+'", "0", text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0 or (depth == 0 and sign in ",;"):
            return False
    return depth == 0


class Finder:
    """Walks over the functions of one translation unit."""

    def __init__(self, root, unit, tree, seen):
        self.root, self.unit, self.files, self.found = str(root) + "/", unit, {}, []
        for cursor in tree.cursor.get_children():
            kind, path = cursor.kind, cursor.location.file and cursor.location.file.name
            if not path or not self.is_ours(path):
                continue
            file = self.files.setdefault(path, File(path))
            span = (cursor.extent.start.offset, cursor.extent.end.offset)
            if kind == Kind.MACRO_DEFINITION:
                file.defined.append(span)
            elif kind == Kind.MACRO_INSTANTIATION and cursor.spelling in LEFT_ALONE:
                file.left_alone.append(span)
            elif kind == Kind.FUNCTION_DECL and cursor.is_definition() and (path, span) not in seen:
                seen.add((path, span))
                self.path, self.file, self.function = path, file, cursor.spelling
                for child in cursor.get_children():
                    if child.kind == Kind.COMPOUND_STMT:
                        self.walk(child, cursor)

    def is_ours(self, path):
        return path.startswith(tuple(f"{self.root}{folder}/" for folder in FOLDERS))

    def spelled(self, location):
        """Where the text of a location stands, if that is in this file."""
        file, line, column, offset = (cindex.c_object_p(), cindex.c_uint(), cindex.c_uint(), cindex.c_uint())
        cindex.conf.lib.clang_getSpellingLocation(location, cindex.byref(file), cindex.byref(line),
                                                  cindex.byref(column), cindex.byref(offset))
        if not file or cindex.File(file).name != self.path:
            return None
        return offset.value

    def span(self, cursor):
        """The text of an expression: as written, as an argument of a macro, or the macro that is all of it."""
        begin, end = cursor.extent.start, cursor.extent.end
        start, stop = self.spelled(begin), self.spelled(end)
        if start is not None and stop is not None and start < stop \
                and not inside(self.file.defined, start, stop) \
                and one_argument(self.file.text(start, stop)):
            return start, stop
        if begin.file is None or begin.file.name != self.path:
            return None
        return begin.offset, end.offset

    def text(self, cursor):
        span = self.span(cursor)
        return self.file.text(*span) if span else ""

    def between(self, left, right):
        """The operator between two operands, if it is written here."""
        left, right = self.span(left), self.span(right)
        if not left or not right or left[1] > right[0]:
            return None
        return re.sub(r"/\*.*?\*/|//[^\n]*", "", self.file.text(left[1], right[0]), flags=re.S).strip()

    def add(self, cursor, operator, after):
        span = self.span(cursor)
        if not span or inside(self.file.left_alone, *span):
            return
        before = self.file.text(*span)
        if "\n#" in before or not one_argument(before):
            return
        self.found.append(Mutant(self.path[len(self.root):], self.function, operator, *span, before, after,
                                 self.unit, self.file.bytes.count(b"\n", 0, span[0]) + 1))

    def walk(self, cursor, parent):
        kind = cursor.kind
        if kind in CONSTANT:
            return
        children = list(cursor.get_children())
        if kind == Kind.VAR_DECL:
            if cursor.storage_class == cindex.StorageClass.STATIC:
                return
            if cursor.type.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
                children = [child for child in children if child.kind == Kind.INIT_LIST_EXPR]
        elif kind == Kind.CASE_STMT:
            children = children[1:]
        elif kind == Kind.INTEGER_LITERAL:
            self.constant(cursor, parent)
        elif kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
            self.binary(cursor, *children)
        elif kind == Kind.UNARY_OPERATOR:
            self.unary(cursor)
        elif kind == Kind.CALL_EXPR:
            self.swap(cursor)
        elif kind == Kind.RETURN_STMT and children:
            self.result(children[0])
        conditions = {Kind.IF_STMT: 0, Kind.WHILE_STMT: 0, Kind.DO_STMT: -1, Kind.CONDITIONAL_OPERATOR: 0}
        if kind in conditions and children:
            condition = children[conditions[kind]]
            if not self.is_comparison(condition):  # whose opposite is another mutant
                self.add(condition, "condition", f"!({self.text(condition)})")
        if parent.kind in STATEMENTS:
            self.drop(cursor, children)
        for child in children:
            self.walk(child, cursor)

    def is_comparison(self, cursor):
        children = list(cursor.get_children())
        return cursor.kind == Kind.BINARY_OPERATOR and self.between(*children) in COMPARISONS

    def constant(self, cursor, parent):
        text = self.text(cursor)
        if parent.kind == Kind.INIT_LIST_EXPR and len(list(parent.get_children())) == 1 \
                or parent.type.get_canonical().kind == TypeKind.POINTER and parent.kind == Kind.UNEXPOSED_EXPR:
            return  # {0} and null pointers
        if text in ("true", "false"):
            self.add(cursor, "constant", "false" if text == "true" else "true")
        elif re.match(r"\d|U?INT\d+_C\(", text):
            self.add(cursor, "constant", f"{text} + 1")
            if not re.match(r"0[uUlL]*$", text):
                self.add(cursor, "constant", f"{text} - 1")

    def binary(self, cursor, left, right):
        sign = self.between(left, right)
        first, second = f"({self.text(left)})", f"({self.text(right)})"
        for other in COMPARISONS.get(sign, ()):
            self.add(cursor, "comparison", f"{first} {other} {second}")
        if sign in ("&&", "||"):
            self.add(cursor, "condition", first)
            self.add(cursor, "condition", second)
        elif sign in ARITHMETIC:
            self.add(cursor, "arithmetic", f"{first} {ARITHMETIC[sign]} {second}")
        elif sign in BITS:
            self.add(cursor, "bits", f"{first} {BITS[sign]} {second}")
        elif sign in SHIFTS:
            self.add(cursor, "bits", f"{first} {sign} ({second} + 1)")
            self.add(cursor, "bits", f"{first} {sign} ({second} - 1)")

    def unary(self, cursor):
        text = self.text(cursor)
        for sign, other in (("++", "--"), ("--", "++")):
            if text.startswith(sign):
                self.add(cursor, "arithmetic", other + text[2:])
            elif text.endswith(sign):
                self.add(cursor, "arithmetic", text[:-2] + other)
        if text.startswith("~"):
            self.add(cursor, "bits", text[1:])

    def swap(self, cursor):
        arguments = list(cursor.get_arguments())
        spans = [self.span(argument) for argument in arguments]
        whole = self.span(cursor)
        if cursor.spelling in SYMMETRIC or not whole or not all(spans) or any(a[1] > b[0] for a, b in zip(spans, spans[1:])):
            return
        for at in range(len(arguments) - 1):
            one, two = self.text(arguments[at]), self.text(arguments[at + 1])
            types = {argument.type.get_canonical().spelling for argument in arguments[at:at + 2]}
            if one != two and len(types) == 1 and whole[0] < spans[at][0] and spans[at + 1][1] < whole[1]:
                self.add(cursor, "arguments", self.file.text(whole[0], spans[at][0]) + two
                         + self.file.text(spans[at][1], spans[at + 1][0]) + one
                         + self.file.text(spans[at + 1][1], whole[1]))

    def result(self, value):
        kind, text = value.type.get_canonical().kind, self.text(value)
        if self.is_comparison(value) or re.match(r"\d|true$|false$", text):
            return  # other mutants do it
        if kind in INTEGERS:
            self.add(value, "return", f"!({text})")
        elif kind == TypeKind.POINTER and text not in ("NULL", "0"):
            self.add(value, "return", "NULL")
        elif kind == TypeKind.RECORD:
            self.add(value, "return", f"({value.type.spelling.replace('const ', '')}){{0}}")
        elif kind in (TypeKind.FLOAT, TypeKind.DOUBLE):
            self.add(value, "return", "0")

    def drop(self, cursor, children):
        if cursor.kind == Kind.CALL_EXPR or cursor.kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR \
                or cursor.kind == Kind.BINARY_OPERATOR and self.between(*children) == "=":
            self.add(cursor, "statement", "")


def find(root, unit, command, seen):
    """The mutants of one translation unit, its headers included; not those of functions already seen."""
    arguments = re.findall(r"-(?:D|I|isystem |std=)\S+", command.replace('\\"', '"'))
    arguments = [word for argument in arguments for word in argument.split(" ", 1)]
    tree = cindex.Index.create().parse(
        str(unit), args=arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    bad = [str(one) for one in tree.diagnostics if one.severity >= cindex.Diagnostic.Error]
    if bad:
        raise RuntimeError(f"clang does not parse {unit}: {bad[0]}")
    return Finder(root, str(unit)[len(str(root)) + 1:], tree, seen).found


def render(source, numbered, start=0, end=None):
    """The text of a file from start to end with the mutants (number, Mutant) in it, outermost first."""
    made, position = [], start
    end = len(source) if end is None else end
    left = sorted(numbered, key=lambda one: (one[1].start, -one[1].end, one[1].operator != "statement"))
    while left:
        number, mutant = left.pop(0)
        inner = [one for one in left if one[1].start < mutant.end]
        left = left[len(inner):]
        original = render(source, inner, mutant.start, mutant.end)
        if mutant.operator == "statement":
            changed, original = "(void)0", f"(void)({original})"
        else:
            changed, original = f"({mutant.after})", f"({original})"
        made += [source[position:mutant.start].decode(), f"(OTELI_MUTANT({number}) ? {changed} : {original})"]
        position = mutant.end
    return "".join(made) + source[position:end].decode()


def rewritten(source, numbered):
    if not numbered:
        return source.decode()
    return '#include "tests/mutants/mutant.h"\n#line 1\n' + render(source, numbered)
