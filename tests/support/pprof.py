# SPDX-License-Identifier: Apache-2.0
"""Writes pprof profiles by hand: what a test wants to be in one, field by field of profile.proto."""
import gzip


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field, values):
    return message(field, b"".join(varint(value) for value in values))


class Profile:
    """sample() stacks are leaf first: names of functions, or (mapping number, address)."""

    def __init__(self, types=(("samples", "count"), ("cpu", "nanoseconds")), time_ns=0,
                 duration_ns=0):
        self.strings = {"": 0}
        self.functions = {}
        self.locations = {}
        self.body = b"".join(
            message(1, number(1, self.string(name)) + number(2, self.string(unit)))
            for name, unit in types)
        self.body += number(9, time_ns) + number(10, duration_ns)
        self.mappings = 0

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def mapping(self, start, limit, offset, file, build_id=""):
        self.mappings += 1
        self.body += message(3, number(1, self.mappings) + number(2, start) + number(3, limit)
                             + number(4, offset) + number(5, self.string(file))
                             + number(6, self.string(build_id)))
        return self.mappings

    def location(self, frame):
        if frame in self.locations:
            return self.locations[frame]
        self.locations[frame] = id = len(self.locations) + 1
        if isinstance(frame, str):
            function = self.functions.setdefault(frame, len(self.functions) + 1)
            self.body += message(5, number(1, function) + number(2, self.string(frame)))
            self.body += message(4, number(1, id) + message(4, number(1, function)))
        else:
            self.body += message(4, number(1, id) + number(2, frame[0]) + number(3, frame[1]))
        return id

    def sample(self, stack, values, labels=()):
        content = packed(1, [self.location(frame) for frame in stack]) + packed(2, values)
        for key, value in labels:
            text = number(2, self.string(value)) if isinstance(value, str) else number(3, value)
            content += message(3, number(1, self.string(key)) + text)
        self.body += message(2, content)

    def bytes(self):
        strings = sorted(self.strings, key=self.strings.get)
        return self.body + b"".join(
            message(6, text if isinstance(text, bytes) else text.encode()) for text in strings)

    def write(self, path):
        with open(path, "wb") as file:
            file.write(gzip.compress(self.bytes()))
        return path
