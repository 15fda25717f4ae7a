# SPDX-License-Identifier: Apache-2.0
"""servers.py --account: where the time goes that tracing adds to a server, by thread.

perf samples the threads by the clock of the CPU time that each takes, so a sample is a known time. The
profiles of a case less those of `bare` are what was added, by part and by function; `residue_percent` is
what that misses of the same difference as the kernel counts it in slices without perf.
"""
import collections
import json
import re
import signal
import subprocess
import time

PERIOD_NS = 451_000  # of a sample; no divisor of a tick
PARTS = (("libotel", "otel-c"), ("ngx_http_otel", "module"), ("[vdso]", "libc"), ("libc.", "libc"), ("ld-", "libc"),
         ("libcurl", "libcurl"))
KERNEL_PARTS = ((r"try_to_wake_up|ttwu_", "wake-ups"), (r"exc_page_fault", "page faults"),
                (r"\bschedule\b", "switches"))
COPIES = re.compile(r"_copy_|copy_user|rep_movs|copy_(to|from)_iter")


def part_of(frames):
    """The part of a program that a sample fell into, and its function; frames from the inside out."""
    function, image = frames[0]
    if image == "redis-server" and function.startswith("otel"):
        return "module", function
    if "kernel" not in image:
        return next((part for name, part in PARTS if image.startswith(name)), image), function
    if COPIES.search(function):
        return "kernel: copies", function
    text = " ".join(name for name, _ in frames)
    for names, part in KERNEL_PARTS:
        if re.search(names, text):
            return f"kernel: {part}", function
    call = re.search(r"__x64_sys_(\w+)", text)
    return f"kernel: {call.group(1) if call else 'entry, exit, interrupts'}", function


def profile(server, cores, start, seconds):
    """A slice under perf: nanoseconds a request by (is_worker, part, function)."""
    data = server.path / "perf.data"
    perf = start(["perf", "record", "-q", "-e", "cpu-clock", "-c", PERIOD_NS, "-g", "-p", server.pid, "-o", data],
                 cores, stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    requests, _ = server.load_some(seconds)
    perf.send_signal(signal.SIGINT)
    _, errors = perf.communicate()
    text = subprocess.run(["perf", "script", "-i", data, "-F", "tid,ip,sym,dso"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    found = collections.Counter()
    for sample in text.split("\n\n"):
        head, *lines = [line.split() for line in sample.splitlines() if line.strip()] or [[]]
        frames = [(words[1].partition("+")[0], words[-1].strip("()").rpartition("/")[2]) for words in lines]
        if frames:
            found[(int(head[0]) == server.pid, *part_of(frames))] += PERIOD_NS / requests
    if not found:
        raise SystemExit(f"perf has no samples here: {errors.strip()}")
    return found


def quiet_mean(counts):
    """The mean, key by key, of that half of the counters that has the smaller totals."""
    half = sorted(counts, key=lambda count: sum(count.values()))[:(len(counts) + 1) // 2]
    sums = collections.Counter()
    for count in half:
        for key, number in count.items():
            sums[key] += number / len(half)
    return sums


def print_thread(line, is_worker, ours, bare, measured_ns):
    """Profiles of a case and of `bare`; measured_ns are what the kernel has counted in other slices."""
    def mean(profiles, key):
        counts = [collections.Counter() for _ in profiles]
        for count, each in zip(counts, profiles):
            for (of_worker, part, function), ns in each.items():
                if of_worker == is_worker:
                    count[key(part, function)] += ns
        return quiet_mean(counts)

    for kind, least_ns, key in (("part", 1, lambda part, _: part),
                                ("function", 15, lambda part, function: f"{part}: {function}")):
        ours_by, bare_by = mean(ours, key), mean(bare, key)
        added = {each: ours_by.get(each, 0) - bare_by.get(each, 0) for each in ours_by | bare_by}
        for each, ns in sorted(added.items(), key=lambda item: -item[1]):
            if abs(ns) >= least_ns:
                print(json.dumps(line | {kind: each, "added_ns": round(ns), "bare_ns": round(bare_by.get(each, 0))}))
    total = sum(added.values())
    residue = round(100 * (measured_ns - total) / measured_ns, 1) if measured_ns else None
    print(json.dumps(line | {"accounted_ns": round(total), "measured_ns": round(measured_ns),
                             "residue_percent": residue}), flush=True)
