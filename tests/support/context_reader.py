# SPDX-License-Identifier: Apache-2.0
"""Reads from outside which span each thread of another process is working for, and whose process it
is, as profilers do.

    with Reader(process) as reader:
        place, is_by_linker, name = reader.variable(thread)
        ... reader.record(place), reader.context()

The threads of the process stand still meanwhile. It shares nothing with otel-c but the
specification, and forgives less than any profiler: what readers may refuse is a Fault here. Of files
only program headers and the dynamic segment are read, as section headers may be stripped.

Source: OpenTelemetry OTEP 4947 "Thread context", OTEP 4719 "Process context"; System V ABI, ELF;
"ELF handling for thread-local storage".
"""
import ctypes
import functools
import os
import platform
import struct
import time

VARIABLE = b"otel_thread_ctx_v1"
PAGE = 4096
STATIC_MOST = 1 << 24  # no object has so much thread-local memory
IS_X86 = platform.machine() == "x86_64"
MACHINE, INITIAL_EXEC = (62, 18) if IS_X86 else (183, 1030)
PT_LOAD, PT_DYNAMIC, PT_TLS = 1, 2, 7
DT_PLTRELSZ, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_JMPREL = 2, 5, 6, 7, 8, 23
DT_GNU_HASH = 0x6FFFFEF5
CONTEXT_NAMES = ("/memfd:OTEL_CTX", "/memfd:OTEL_CTX (deleted)", "[anon_shmem:OTEL_CTX]",
                 "[anon:OTEL_CTX]")


class Fault(Exception):
    """A rule that is broken."""


def demand(is_so, rule):
    if not is_so:
        raise Fault(rule)


# ---- files -------------------------------------------------------------------------------------

class Object:
    """A file that defines the variable; NotIt otherwise."""

    class NotIt(Exception):
        pass

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if (self.bytes[:6] != b"\x7fELF\x02\x01"
                or struct.unpack_from("<H", self.bytes, 18)[0] != MACHINE):
            raise Object.NotIt
        start, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        # type, flags, offset, address, physical address, bytes in the file, in memory, alignment
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, start + i * size)
                         for i in range(count)]
        self.tags = {}
        for _, _, offset, _, _, size, _, _ in self.of_type(PT_DYNAMIC):
            for tag, value in struct.iter_unpack("<QQ", self.bytes[offset:offset + size]):
                if tag == 0:
                    break
                self.tags[tag] = value
        self.number, self.place = self.find(VARIABLE)

    def of_type(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def at(self, address, layout):
        """What is at an address of the file."""
        for _, _, offset, start, _, size, _, _ in self.of_type(PT_LOAD):
            if start <= address and address + struct.calcsize(layout) <= start + size:
                return struct.unpack_from(layout, self.bytes, offset + address - start)
        raise Object.NotIt

    def find(self, name):
        """The number of a symbol, and its offset, by the first symbol with its hash in the
        bucket; then the next ones."""
        if DT_GNU_HASH not in self.tags:
            raise Object.NotIt
        wanted = 5381
        for byte in name:
            wanted = (wanted * 33 + byte) & 0xFFFFFFFF
        table = self.tags[DT_GNU_HASH]
        buckets, first, words, _ = self.at(table, "<IIII")
        chains = table + 16 + 8 * words + 4 * buckets
        number, = self.at(chains - 4 * buckets + 4 * (wanted % buckets), "<I")
        while number >= first:
            found, = self.at(chains + 4 * (number - first), "<I")
            at, kind, _, section, value, size = self.at(
                self.tags[DT_SYMTAB] + 24 * number, "<IBBHQQ")
            text, = self.at(self.tags[DT_STRTAB] + at, f"<{len(name) + 1}s")
            if found | 1 == wanted | 1 and text == name + b"\0" and section != 0:
                demand(kind & 15 == 6 and size == 8, "the symbol is no thread-local pointer")
                return number, value
            if found & 1:
                break
            number += 1
        raise Object.NotIt

    def bias(self, start, file_offset):
        """How far addresses in memory are from those in the file, by a mapping."""
        for _, _, offset, address, _, _, _, _ in self.of_type(PT_LOAD):
            if offset - address % PAGE == file_offset:
                return start - (address - address % PAGE)
        return None

    def by_linker(self, pointer):
        """The main program's block is where the thread pointer is."""
        for _, _, _, _, _, _, size, alignment in self.of_type(PT_TLS):
            demand(self.place + 8 <= size, "the symbol is not in the thread-local segment")
            alignment = max(alignment, 1)
            before = -(-size // alignment) * alignment
            behind = -(-16 // alignment) * alignment
            return pointer + self.place + (-before if IS_X86 else behind)
        raise Fault("there is no thread-local segment")

    def slots(self):
        """Words that a relocation has the dynamic linker fill in: it names the symbol, or only
        its place if the library was bound to its own."""
        for table, size in (DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ):
            for at in range(0, self.tags.get(size, 0), 24):
                offset, info, addend = self.at(self.tags[table] + at, "<QQq")
                symbol = info >> 32
                is_ours = (symbol == self.number and addend == 0) if symbol else (
                    addend == self.place)
                if info & 0xFFFFFFFF == INITIAL_EXEC and is_ours:
                    yield offset
                else:
                    demand(symbol != self.number, "a relocation of the symbol is not initial-exec")


@functools.lru_cache(None)
def object_at(path):
    try:
        return Object(path)
    except (Object.NotIt, OSError, struct.error):
        return None


# ---- messages ----------------------------------------------------------------------------------

def fields(message):
    """Numbers of fields, and their numbers or bytes."""
    at = 0

    def take(count):
        nonlocal at
        demand(count <= len(message) - at, "a field goes beyond the end")
        at += count
        return message[at - count:at]

    def number():
        value = shift = 0
        while True:
            byte, = take(1)
            value |= (byte & 127) << shift
            if byte < 128:
                demand(byte or shift == 0, "a number is longer than it need be")
                return value
            shift += 7

    while at < len(message):
        tag = number()
        demand(tag & 7 in (0, 1, 2), "a field has another type")
        yield tag >> 3, (number() if tag & 7 == 0 else take(8) if tag & 7 == 1 else take(number()))


def text(content):
    try:
        return content.decode()
    except (UnicodeDecodeError, AttributeError):
        raise Fault(f"{content!r} is no UTF-8") from None


def value(message):
    """Of an AnyValue: its field, and what is in it."""
    parts = list(fields(message))
    demand(len(parts) <= 1, "a value is more than one")
    field, content = parts[0] if parts else (0, None)
    demand(field <= 7, f"a value has the field {field}")
    if field == 1:
        content = text(content)
    elif field == 5:
        content = [value(element) for _, element in fields(content)]
    elif field == 6:
        content = [attribute(pair) for _, pair in fields(content)]
    return field, content


def attribute(message):
    parts = dict(fields(message))
    demand(set(parts) <= {1, 2} and parts.get(1), "an attribute has no key, or more than a value")
    return text(parts[1]), value(parts.get(2, b""))


# ---- a process that stands still ---------------------------------------------------------------

class Reader:
    SEIZE, INTERRUPT, GETREGSET, DETACH, WALL = 0x4206, 0x4207, 0x4204, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def __init__(self, process):
        self.process = process
        self.signals, self.pointers = {}, {}

    def __enter__(self):
        """Until a walk finds no thread that is new: those who run may have started others."""
        is_new = True
        while is_new:
            new = {int(name) for name in os.listdir(f"/proc/{self.process}/task")}
            is_new = bool(new - set(self.signals))
            for thread in new - set(self.signals):
                self.attach(thread)
        self.memory = os.open(f"/proc/{self.process}/mem", os.O_RDONLY)
        with open(f"/proc/{self.process}/maps", encoding="utf-8") as maps:
            self.maps = [self.mapping(line) for line in maps]
        return self

    def __exit__(self, *_):
        os.close(self.memory)
        for thread, pending in self.signals.items():
            self.libc.ptrace(self.DETACH, thread, None, pending or None)

    def attach(self, thread):
        registers = (ctypes.c_uint64 * 64)()
        into = (ctypes.c_uint64 * 2)(ctypes.addressof(registers), ctypes.sizeof(registers))
        demand(self.libc.ptrace(self.SEIZE, thread, None, None) == 0,
               f"it cannot be attached to: {os.strerror(ctypes.get_errno())}")
        self.libc.ptrace(self.INTERRUPT, thread, None, None)
        _, status = os.waitpid(thread, self.WALL)
        # A stop that has no event is one before a signal, which it still has to get.
        self.signals[thread] = 0 if status >> 16 else os.WSTOPSIG(status)
        demand(self.libc.ptrace(self.GETREGSET, thread, 1 if IS_X86 else 0x401,
                                ctypes.addressof(into)) == 0, "it has no registers")
        self.pointers[thread] = registers[21 if IS_X86 else 0]  # fs_base is the 22nd of them

    @staticmethod
    def mapping(line):
        place, permissions, offset, _, _, *name = line.rstrip("\n").split(None, 5)
        start, end = (int(part, 16) for part in place.split("-"))
        return start, end, permissions, int(offset, 16), name[0] if name else ""

    def read(self, address, layout):
        try:
            return struct.unpack(layout, os.pread(self.memory, struct.calcsize(layout), address))
        except (OSError, OverflowError, struct.error):
            raise Fault(f"there is no memory at {address:#x}") from None

    def locate(self, found, bias, pointer, is_main):
        """All ways to the variable have to lead to one place: memory that every thread has from
        its beginning."""
        places = {found.by_linker(pointer)} if is_main else set()
        for slot in found.slots():
            offset, = self.read(bias + slot, "<q")
            demand(abs(offset) < STATIC_MOST, f"a slot has {offset}, which is no offset")
            places.add(pointer + offset)
        demand(len(places) == 1, f"the ways to the variable lead to {len(places)} places")
        return places.pop()

    def variable(self, thread):
        """Where it is, whether the linker knew, and the file that defines it. None: invisible."""
        program = os.readlink(f"/proc/{self.process}/exe")
        ways = []
        for start, _, permissions, offset, name in self.maps:
            found = object_at(name) if name[:1] == "/" and "x" in permissions else None
            bias = found.bias(start, offset) if found else None
            if bias is not None:
                place = self.locate(found, bias, self.pointers[thread], name == program)
                ways.append((place, name == program, name))
        demand(len({way[0] for way in ways}) <= 1, f"there is more than one variable: {ways}")
        return ways[0] if ways else None

    def record(self, variable):
        """What a thread is working for, in the words of the scene."""
        address, = self.read(variable, "<Q")
        if address == 0:
            return "none"
        trace, span, valid, flags, size = self.read(address, "<16s8sBBH")
        demand(address % 2 == 0, "the record is not aligned")
        demand(valid <= 1, f"valid is {valid}")
        if valid == 0:
            return "none"
        demand(any(trace) == any(span), "one of the ids is set, and one is not")
        demand(any(span) or flags == 0, "there are flags without ids")
        demand(size == 0, "there are attributes")
        return f"{trace.hex()}:{span.hex()}:{flags:02x}" if any(span) else "none"

    def context(self):
        """When it was published, service.name, the schema of threads, and how many attributes the
        resource has. None: the process says nothing of itself."""
        found = [mapping for mapping in self.maps if mapping[4] in CONTEXT_NAMES]
        demand(len(found) <= 1, f"there are {len(found)} mappings with a context")
        if not found:
            return None
        start, _, permissions, _, _ = found[0]
        demand("x" not in permissions and "p" in permissions, f"the mapping is {permissions}")
        signature, version, size, published, payload = self.read(start, "<8sIIQQ")
        demand(signature == b"OTEL_CTX" and version == 2, f"it is {signature}, version {version}")
        demand(0 < published <= time.clock_gettime_ns(time.CLOCK_BOOTTIME),
               f"it was published at {published}")
        demand(0 < size <= 65536, f"the payload has {size} bytes")
        payload, = self.read(payload, f"<{size}s")
        parts = list(fields(payload))
        demand({field for field, _ in parts} <= {1, 2}, "the payload has other fields")
        resources = [content for field, content in parts if field == 1]
        demand(len(resources) == 1, f"the payload has {len(resources)} resources")
        resource = [attribute(content) for field, content in fields(resources[0]) if field == 1]
        pairs = [attribute(content) for field, content in parts if field == 2]
        extra = dict(pairs)
        demand(len(extra) == len(pairs), "an attribute is there twice")
        field, schema = extra.get("threadlocal.schema_version", (1, "none"))
        demand(field == 1 and schema, "the version of the schema is no text, or empty")
        field, keys = extra.get("threadlocal.attribute_key_map", (5, []))
        demand(field == 5 and all(key[0] == 1 and key[1] for key in keys),
               "the keys of records are no array of texts, or one is empty")
        return published, dict(resource).get("service.name", (0, None))[1], schema, len(resource)
