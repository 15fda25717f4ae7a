# SPDX-License-Identifier: Apache-2.0
"""otel-flame from the outside: profiles that are made by hand, and the pages that it makes of them."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import harness

sys.path.append(str(harness.SOURCES / "tests/support"))
from pprof import Profile, message, number  # noqa: E402

FLAME = PROGRAM = os.path.realpath(harness.program("otel-flame"))  # also a program with symbols
SVG = "{http://www.w3.org/2000/svg}"
HTML = "{http://www.w3.org/1999/xhtml}"
MS = 1_000_000


def two_queries():
    profile = Profile(time_ns=1_763_752_500_000_000_000, duration_ns=2_000_000_000)
    profile.sample(["scan", "run", "main"], [60, 600 * MS], [("query", "A")])
    profile.sample(["sort", "run", "main"], [10, 100 * MS], [("query", "A")])
    profile.sample(["scan", "run", "main"], [30, 300 * MS], [("query", "B")])
    return profile


class Page:
    """A graph as it is to be seen: (name, share) of its boxes, by their place."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        self.root = ElementTree.fromstring(self.text)

    def graphs(self):
        return [node for node in self.root.iter(SVG + "svg") if node.get("class") == "graph"]

    @staticmethod
    def boxes(graph):
        return [(box.find(SVG + "title").text.split("\n")[0], int(box.get("data-d")),
                 float(box.get("x").rstrip("%")), float(box.get("width").rstrip("%")))
                for box in graph.iter(SVG + "svg") if box.get("class").startswith("f ")]


def place_of_main():
    """Where main is mapped that is loaded at this address: the mapping as a profile has it, and the
    address in it."""
    lines = subprocess.run(["nm", PROGRAM], capture_output=True, text=True, check=True).stdout
    address = int(re.search(r"^([0-9a-f]+) [tT] main$", lines, re.M).group(1), 16)
    program = subprocess.run(["readelf", "-lW", PROGRAM], capture_output=True, text=True,
                             check=True).stdout
    # LOAD of the code: its offset in the file, and the address that goes with it.
    offset, virtual, size = (int(word, 16) for word in re.search(
        r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", program).groups())
    base = 0x555500000000
    return (base, base + size, offset), base + address - virtual + 4


class FlameTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flame_test.")
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        self.two = two_queries().write(self.at / "a.pb.gz")

    def flame(self, *arguments, status=0):
        done = harness.run("otel-flame", *arguments, cwd=self.at)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def page(self, *arguments, out="out.html"):
        self.said = self.flame("--out", out, *arguments)
        return Page(self.at / out)

    def test_boxes_lie_below_who_calls_them_and_are_as_wide_as_their_share(self):
        graph, = self.page(self.two).graphs()

        self.assertEqual(Page.boxes(graph), [("main", 0, 0, 100), ("run", 1, 0, 100),
                                             ("scan", 2, 0, 90), ("sort", 2, 90, 10)])

    def test_each_value_of_a_label_has_a_graph_and_a_row_to_choose_it(self):
        page = self.page("--label", "query", self.two)

        everything, first, second = page.graphs()
        self.assertEqual(len(Page.boxes(everything)), 4)
        self.assertEqual(Page.boxes(first)[2][0], "scan")
        self.assertAlmostEqual(Page.boxes(first)[2][3], 600 / 7, places=3)
        self.assertEqual(Page.boxes(second), [("main", 0, 0, 100), ("run", 1, 0, 100),
                                              ("scan", 2, 0, 100)])
        links = [link.get("href") for link in page.root.iter(HTML + "a")]
        sections = ["#" + section.get("id") for section in page.root.iter(HTML + "section")]
        self.assertEqual(links, sections)
        self.assertRegex(self.said.stdout, r" 70\.0 % +700 ms  query=A\n +30\.0 % +300 ms  query=B\n")

    def test_one_value_leaves_the_others_out(self):
        graph, = self.page("--label", "query=B", self.two).graphs()

        self.assertEqual([box[0] for box in Page.boxes(graph)], ["main", "run", "scan"])
        self.assertIn("300 ms of processor time · 30 samples", self.said.stdout)

    def test_a_picture_has_the_label_as_its_first_row(self):
        page = self.page("--label", "query", self.two, out="out.svg")

        self.assertEqual(page.root.tag, SVG + "svg")
        self.assertEqual([box[:2] for box in Page.boxes(page.root)][:2],
                         [("query=A", 0), ("main", 1)])

    def test_profiles_are_added_up(self):
        other = Profile()
        other.sample(["sort", "run", "main"], [100, 1000 * MS], [("query", "B")])
        second = other.write(self.at / "b.pb.gz")

        graph, = self.page(self.two, second).graphs()

        self.assertEqual(Page.boxes(graph)[2], ("sort", 2, 0, 55))
        self.assertIn("2.00 s of processor time · 200 samples · 2 profiles", self.said.stdout)

    def test_samples_without_the_label_are_a_value_of_their_own(self):
        profile = two_queries()
        profile.sample(["idle", "main"], [50, 500 * MS])
        file = profile.write(self.at / "a.pb.gz")

        self.page("--label", "query", file)

        self.assertIn("33.3 %    500 ms  query=(none)\n", self.said.stdout)

    def test_names_come_from_the_symbols_of_the_program_and_are_the_files_without(self):
        place, address = place_of_main()
        profile = Profile()
        profile.sample([(profile.mapping(*place, PROGRAM), address)], [1, MS])
        base = place[0]
        other = profile.mapping(base + (1 << 30), base + (2 << 30), 0,
                                PROGRAM + ".not-there")
        for place in 0x123, 0x456:
            profile.sample([(other, base + (1 << 30) + place)], [1, MS])
        for place in 0x123, 0x456:
            profile.sample([(0, place)], [1, MS])
        profile.sample([(profile.mapping(0x1000, 0x2000, 0, "[vdso]"), 0x1123)], [1, MS])

        graph, = self.page(profile.write(self.at / "a.pb.gz")).graphs()

        name = os.path.basename(PROGRAM)
        self.assertEqual({box[0] for box in Page.boxes(graph)},
                         {f"main ({name})", f"[{name}.not-there] ({name}.not-there)", "[no file]",
                          "[vdso] ([vdso])"})
        self.assertIn(f"{name}.not-there cannot be read", self.said.stderr)

    def test_a_program_with_another_build_id_gives_no_names(self):
        profile = Profile()
        mapping = profile.mapping(0x1000, 0x2000, 0x1000, PROGRAM, "00" * 20)
        profile.sample([(mapping, 0x1100)], [1, MS])

        self.page(profile.write(self.at / "a.pb.gz"))

        self.assertIn("is not the one that ran", self.said.stderr)

    def test_builds_of_a_program_are_told_apart_in_one_page(self):
        place, address = place_of_main()
        notes = subprocess.run(["readelf", "-nW", PROGRAM], capture_output=True, text=True,
                               check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        files = []
        for number_of, build in enumerate((build_id, "00" * 20, build_id, "11" * 20)):
            profile = Profile()
            profile.sample([(profile.mapping(*place, PROGRAM, build), address)], [1, MS])
            files.append(profile.write(self.at / f"{number_of}.pb.gz"))

        graph, = self.page(*files).graphs()

        name = os.path.basename(PROGRAM)
        boxes = {box[0]: box[3] for box in Page.boxes(graph)}
        self.assertAlmostEqual(boxes[f"main ({name})"], 50, places=3)
        self.assertEqual(len(boxes), 2)
        self.assertEqual(self.said.stderr.count("is not the one that ran"), 1)

    def test_whatever_names_there_are_the_page_is_well_formed(self):
        profile = Profile()
        nasty = ["a<b> & \"c\"'", "\x01\x1f", b"\xff\xfe", "\ufffe\U0001f525", "]]>", "-->", ""]
        for name in nasty:
            text = name if isinstance(name, str) else name.decode("latin-1")
            profile.sample([text or "empty"], [1, MS], [("<k>&", text or "v")])
        raw = profile.bytes() + message(6, b"\xc3\x28")
        (self.at / "a.pb").write_bytes(raw)

        for out in ("out.html", "out.svg"):
            page = self.page("--label", "<k>&", "--title", "<&>", self.at / "a.pb", out=out)
            names = {box[0] for graph in page.graphs() for box in Page.boxes(graph)}
            self.assertIn("a<b> & \"c\"'", names)

    def test_the_page_needs_nothing_else(self):
        text = self.page(self.two).text

        for word in ("http:", "https:", "@import", "url(", "src="):
            rest = text.replace("http://www.w3.org/2000/svg", "").replace(
                "http://www.w3.org/1999/xhtml", "")
            self.assertNotIn(word, rest)

    def test_what_is_wrong_is_one_sentence(self):
        good = two_queries().bytes()
        cases = {
            b"": "is empty",
            b"\x1f\x8b\x08broken": "is a gzip file that is broken or cut off",
            good[:-1]: "is no pprof profile, or only a part of one",
            b"not a profile": "is no pprof profile, or only a part of one",
            good + message(2, number(2, 1)):
                "has a sample with more or fewer values than it has types of values",
            message(6, b""): "has no values",
        }
        for content, sentence in cases.items():
            file = self.at / "bad.pb"
            file.write_bytes(content)
            said = self.flame(file, status=1)
            self.assertEqual(said.stderr, f"otel-flame: {file} {sentence}\n")

    def test_what_is_not_in_a_profile_is_left_out(self):
        profile = two_queries()
        sample = message(2, number(1, 99) + message(2, b"\x05\x07") + message(3, number(1, 1 << 40)))
        (self.at / "a.pb").write_bytes(profile.bytes() + sample)

        graph, = self.page(self.at / "a.pb").graphs()

        self.assertEqual({box[0] for box in Page.boxes(graph)}, {"main", "run", "scan", "sort"})

    def test_a_profile_that_is_cut_anywhere_does_no_harm(self):
        content = two_queries().bytes()
        for length in range(1, len(content), 7):
            (self.at / "bad.pb").write_bytes(content[:length])
            done = subprocess.run([FLAME, "--out", "-", self.at / "bad.pb"], capture_output=True,
                                  check=False, timeout=60)
            self.assertIn(done.returncode, (0, 1))

    def test_what_cannot_be_read_is_left_out_of_several_and_said(self):
        good = self.two
        (self.at / "empty.pb.gz").touch()
        os.mkdir(self.at / "folder")

        said = self.flame(good, "empty.pb.gz", "folder", "/dev/zero", "missing", good, status=1)

        self.assertEqual(said.stderr, "otel-flame: empty.pb.gz is empty\n"
                                      "otel-flame: folder is a directory\n"
                                      "otel-flame: /dev/zero is no file\n"
                                      "otel-flame: missing is not there\n")
        self.assertIn("2.00 s of processor time · 200 samples · 2 profiles", said.stdout)
        self.assertTrue((self.at / "flame.html").exists())

    def test_a_profile_may_come_through_a_pipe(self):
        content = two_queries().bytes()

        done = subprocess.run([FLAME, "-"], input=content, capture_output=True, cwd=self.at,
                              timeout=60, check=True)

        self.assertIn(b"100 samples", done.stdout)
        pipe = self.at / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([FLAME, pipe], cwd=self.at, stdout=subprocess.PIPE) as process:
            pipe.write_bytes(content)
            self.assertIn(b"100 samples", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 0)

    def test_a_label_that_is_not_there_is_answered_with_those_that_are(self):
        profile = two_queries()
        profile.sample(["idle", "main"], [50, 500 * MS], [("route", "/a"), ("esc\x1b[1m", "x")])
        file = profile.write(self.at / "a.pb.gz")
        for label in ("quary", "quary=A"):
            said = self.flame("--label", label, file, status=1)
            self.assertEqual(said.stderr, "otel-flame: no sample has a label quary; there are "
                                          "query, route, esc\ufffd[1m\n")
        self.assertFalse((self.at / "flame.html").exists())

    def test_what_a_profile_says_does_nothing_to_a_terminal(self):
        profile = Profile()
        mapping = profile.mapping(0x1000, 0x2000, 0x1000, "/no\x1b[2Jwhere\n")
        profile.sample([(mapping, 0x1100)], [1, MS], [("query", "\x1b]0;x\x07")])
        file = profile.write(self.at / "a.pb.gz")

        said = self.flame("--label", "query", file)

        for text in (said.stdout, said.stderr):
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f]")
        self.assertIn("query=\ufffd]0;x\ufffd\n", said.stdout)

    def test_no_pipe_or_device_is_opened_for_names(self):
        pipe = self.at / "pipe"
        os.mkfifo(pipe)
        profile = Profile()
        mapping = profile.mapping(0x1000, 0x2000, 0x1000, str(pipe))
        profile.sample([(mapping, 0x1100)], [1, MS])

        said = self.flame(profile.write(self.at / "a.pb.gz"))

        self.assertIn("cannot be read", said.stderr)

    def test_a_page_stays_small_however_many_stacks_there_are(self):
        profile = Profile()
        for i in range(3000):
            stack = [f"f{i * step % 4001}" for step in (7, 11, 13, 17)]
            profile.sample([f"leaf{i}"] + stack[:i % 5] + ["main"], [1, MS],
                           [("query", i % 50), ("span", str(i))])
        file = profile.write(self.at / "a.pb.gz")

        for label in ("query", "span"):
            page = self.page("--label", label, file)
            self.assertLess(len(page.text), 16_000_000)
            self.assertLessEqual(len(page.graphs()), 41)
            self.assertLess(sum(len(Page.boxes(graph)) for graph in page.graphs()), 41_000)

    def test_wrong_usage_is_said(self):
        for label in ("", "=x"):
            self.assertIn("which label?", self.flame("--label", label, "a", status=2).stderr)
        self.assertIn("--help", self.flame("--bogus", status=2).stderr)
        self.assertEqual(self.flame("-h").stdout, self.flame("--help").stdout)
        self.assertIn("which profiles?", self.flame(status=2).stderr)
        self.assertIn("is not there", self.flame("nothing.pb.gz", status=1).stderr)
        self.assertIn("no sample has query=C", self.flame("--label", "query=C", self.two, status=1).stderr)
        self.assertIn("cannot be written",
                      self.flame("--out", "no/such/place.html", self.two, status=1).stderr)


if __name__ == "__main__":
    harness.main()
