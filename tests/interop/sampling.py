#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our samplers decide as those of the official Python SDK do, on 100,000 trace ids.

    sampling.py PROGRAM        PROGRAM is tests/interop/sampling.c

traceidratio: the algorithm is of the SDK's choice. Ours is that of the SDKs for Python and Go
(the low 64 bits of the trace id are below ratio * 2^64), so every decision has to be the same.

probability: R >= T is specified, and so are th and rv. The specification recommends thresholds of
four significant digits, and so does ours; the Python SDK's are exact. So each ratio is compared
twice: with the ratio that our threshold stands for exactly, where every decision and tracestate
has to be the same; and with the ratio itself, where decisions may differ only for those R that
lie between the two thresholds.

Two things are known to differ, and are taken into account: where nothing is left in `ot`, the
Python SDK leaves the old member there, th and all, and the specification has it removed; and
below a parent whose flag contradicts its th, ours follows the flag and erases the th, as the
specification says that samplers should.

OTEL_TEST_LONG=1 asks about every trace id with every ratio.
"""

import os
import pathlib
import random
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import receiver  # noqa: E402

receiver.run_with_peers()

from opentelemetry.sdk import version as sdk_version  # noqa: E402
from opentelemetry.sdk.trace import _sampling_experimental as experimental  # noqa: E402
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased  # noqa: E402
from opentelemetry.trace import (  # noqa: E402
    NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context)

IDS = 100_000
LIMIT = 1 << 56
RATIOS = ["1", "0.5", "0.25", "0.3333333333333333", "0.1", "0.01", "0.0001", "1e-06", "0.9", "0"]
FLAGS = ["-", "00", "01", "03"]


def ask(program, questions):
    lines = "".join(" ".join(question) + "\n" for question in questions)
    done = subprocess.run([program], input=lines, text=True, capture_output=True, check=True)
    answers = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions"
    return [(sign == "+", "" if state == "-" else state) for sign, state in answers]


def context_of(trace_id, flags, state):
    if flags == "-":
        return None
    return set_span_in_context(NonRecordingSpan(SpanContext(
        trace_id, 1, True, TraceFlags(int(flags, 16)), TraceState.from_header([state]))))


def peer(sampler, question):
    _, _, trace_id, flags, state = question
    state = "" if state == "-" else state
    trace_id = int(trace_id, 16)
    result = sampler.should_sample(context_of(trace_id, flags, state), trace_id, "a",
                                   trace_state=TraceState.from_header([state]) if state else None)
    return (result.decision is Decision.RECORD_AND_SAMPLE,
            result.trace_state.to_header() if result.trace_state else "")


def members(state):
    """The tracestate without its order, `ot` taken apart."""
    found = dict(member.split("=", 1) for member in state.split(",") if member)
    ot = dict(sub.split(":", 1) for sub in found.pop("ot", "").split(";") if sub)
    return found, ot


def same_state(ours, theirs, before):
    if members(ours) == members(theirs):
        return True
    others, ot = members(before)
    return set(ot) == {"th"} and members(ours) == (others, {}) and \
        members(theirs) == (others, ot)


def randomness(question):
    ot = members("" if question[4] == "-" else question[4])[1]
    return int(ot["rv"], 16) if "rv" in ot else int(question[2], 16) % LIMIT


def threshold_of(program, ratio):
    """The threshold that ours writes for a ratio; LIMIT: it samples nothing."""
    sampled, state = ask(program, [["probability", ratio, "f" * 32, "-", "-"]])[0]
    return int(members(state)[1]["th"].ljust(14, "0"), 16) if sampled else LIMIT


def random_state(dice):
    parts = []
    if dice.random() < 0.5:
        ot = []
        if dice.random() < 0.5:
            ot.append(f"rv:{dice.getrandbits(56):014x}")
        if dice.random() < 0.5:
            ot.append("th:" + (f"{dice.getrandbits(16):04x}".rstrip("0") or "0"))
        if dice.random() < 0.3:
            ot.append("xy:A.b_-9")
        dice.shuffle(ot)
        if ot:
            parts.append("ot=" + ";".join(ot))
    if dice.random() < 0.4:
        parts.append("vendor=some:value;x")
    if dice.random() < 0.2:
        parts.append("t@v=1")
    dice.shuffle(parts)
    return ",".join(parts) or "-"


def question_lists(dice, sampler, with_parents, edge_of):
    """For each ratio its questions: with random ids, and those next to the threshold."""
    is_long = os.environ.get("OTEL_TEST_LONG") == "1"
    ids = [dice.getrandbits(128) or 1 for _ in range(IDS)]
    for index, ratio in enumerate(RATIOS):
        chosen = ids if is_long else ids[index::len(RATIOS)]
        edge, top = edge_of(ratio)
        chosen = chosen + [(1 << 127) | (edge + d) for d in (-1, 0, 1) if 0 <= edge + d < top]
        questions = []
        for trace_id in chosen:
            flags = dice.choice(FLAGS) if with_parents else "-"
            state = random_state(dice) if flags != "-" else "-"
            questions.append([sampler, ratio, f"{trace_id:032x}", flags, state])
        yield ratio, questions


def check_trace_id_ratio(program, dice):
    def edge(ratio):
        return TraceIdRatioBased.get_bound_for_rate(float(ratio)), 1 << 64
    asked = wrong = 0
    for ratio, questions in question_lists(dice, "traceidratio", False, edge):
        sampler = TraceIdRatioBased(float(ratio))
        for question, ours in zip(questions, ask(program, questions)):
            asked += 1
            wrong += ours[0] != peer(sampler, question)[0]
    print(f"traceidratio: {asked} decisions, {wrong} differ")
    return wrong == 0


def check_probability(program, dice):
    def edge(ratio):
        return threshold_of(program, ratio), LIMIT
    asked = wrong = between = unexplained = 0
    for ratio, questions in question_lists(dice, "probability", True, edge):
        threshold = threshold_of(program, ratio)
        rounded = experimental.composite_sampler(
            experimental.composable_traceid_ratio_based((LIMIT - threshold) / LIMIT))
        exact_threshold = LIMIT - round(float(ratio) * LIMIT)
        low, high = sorted((threshold, exact_threshold))
        exact = experimental.composite_sampler(
            experimental.composable_traceid_ratio_based(float(ratio)))
        for question, ours in zip(questions, ask(program, questions)):
            asked += 1
            theirs = peer(rounded, question)
            before = "" if question[4] == "-" else question[4]
            if ours[0] != theirs[0] or not same_state(ours[1], theirs[1], before):
                wrong += 1
                if wrong <= 3:
                    print(f"  {question}: ours {ours}, theirs {theirs}")
            if ours[0] != peer(exact, question)[0]:
                between += 1
                unexplained += not low <= randomness(question) < high
    print(f"probability: {asked} decisions and tracestates, {wrong} differ; with thresholds that "
          f"are not rounded {between} would, {unexplained} of them not by the rounding")
    return wrong == 0 and unexplained == 0


def check_parent_threshold(program, dice):
    def edge(ratio):
        return threshold_of(program, ratio), LIMIT
    asked = wrong = contradictions = 0
    for ratio, questions in question_lists(dice, "parent_threshold", True, edge):
        threshold = threshold_of(program, ratio)
        root = experimental.composable_traceid_ratio_based((LIMIT - threshold) / LIMIT)
        sampler = experimental.composite_sampler(experimental.composable_parent_threshold(root))
        for question, ours in zip(questions, ask(program, questions)):
            asked += 1
            before = "" if question[4] == "-" else question[4]
            others, ot = members(before)
            if question[3] != "-" and "th" in ot:
                parents = randomness(question) >= int(ot["th"].ljust(14, "0"), 16)
                flag = int(question[3], 16) & 1 == 1
                if parents != flag:
                    contradictions += 1
                    ot.pop("th")
                    wrong += ours[0] != flag or members(ours[1]) != (others, ot)
                    continue
            theirs = peer(sampler, question)
            wrong += ours[0] != theirs[0] or not same_state(ours[1], theirs[1], before)
    print(f"parent_threshold: {asked} decisions and tracestates, {wrong} differ; "
          f"{contradictions} parents contradicted themselves")
    return wrong == 0


def main():
    program = sys.argv[1]
    print(f"peer: opentelemetry-sdk {sdk_version.__version__} for Python")
    dice = random.Random(20261121)
    checks = [check(program, dice) for check in (check_trace_id_ratio, check_probability,
                                                 check_parent_threshold)]
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
