"""The gain that advice promises: whoever takes it computes less.

Here are the rules whose gain is work of a step. `ELSEWHERE` says which tests measure the others, and `NOT_MEASURED`
why some are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from advice_programs import (
    PAIRS,
    Step,
    adding,
    attention,
    converting,
    convolutions,
    evaluating,
    forgetting,
    indexing,
    masking,
    normalising,
    optimizing,
    ordering,
    reading,
    record,
    threads,
    transforming,
    undisturbed,
)
from advice_traces import DEVICE_PAIRS
from test_advice import documented_rules


def adding_at_once() -> torch.Tensor:
    """The sum that `adding` makes one by one."""
    return torch.ones(4).expand(1501, 4).sum(dim=0)


#: For each rule the step with the fault, and the same step with the advice taken. Quiet or not, the second takes a
#: tenth less processor time at least; measured were 4 to 76 % of the first.
FASTER: dict[str, tuple[Callable[[], Step], Callable[[], Step]]] = {
    "fp64-slow-path": (lambda: convolutions(torch.float64), lambda: convolutions(torch.float32)),
    "numpy-round-trip": (lambda: masking(True), lambda: masking(False)),
    "scalar-read": (lambda: reading(True), lambda: reading(False)),
    "for-loop-optimizer": (lambda: optimizing(foreach=False), lambda: optimizing(fused=True)),
    "dtype-casts": (lambda: converting(True), lambda: converting(False)),
    "contiguous-copies": (lambda: ordering(True), lambda: ordering(False)),
    "autograd-in-evaluation": (lambda: evaluating(True), lambda: evaluating(False)),
    "for-loop-indexing": (lambda: indexing(True), lambda: indexing(False)),
    "per-sample-transforms": (lambda: transforming(True), lambda: transforming(False)),
    "many-tiny-ops": (lambda: adding(True), lambda: adding_at_once),
}

#: Where the gain is small, what is no longer done is counted.
FEWER: dict[str, tuple[Callable[[], Step], Callable[[], Step], tuple[str, ...]]] = {
    "zero-grad-fills": (
        lambda: forgetting(False),
        lambda: forgetting(True),
        ("aten::zero_", "aten::_foreach_zero_"),
    ),
    "conv-bias-before-norm": (lambda: normalising(True), lambda: normalising(False), ("AccumulateGrad",)),
    "eager-attention": (
        lambda: attention(False),
        lambda: attention(True),
        ("aten::div", "aten::softmax", "aten::bmm"),
    ),
}

#: The tests that measure what is no work of a step.
ELSEWHERE = {
    "data-loading-bound": "test_advice_measured.py: the middle wait for a batch",
    "one-thread": "test_advice_measured.py: processor time of the main thread",
    "thread-oversubscription": "test_advice_measured.py: processor time of ranks and of one process",
    "memory-growth": "test_advice_measured.py: pages that a process grows by",
    "garbage-collection": "test_advice_measured.py: processor time of a collection; test_advice_runs.py",
    "workers-restarted": "test_advice_measured.py: the middle epoch; test_advice_runs.py: processes",
    "uneven-ranks": "test_advice_ranks.py: waits, and the quickest step",
}

#: What a machine without a device cannot show: these rules have made-up traces (advice_traces.py).
_COPIES = "the time of copies to a device and of waits for it"
_LAUNCHES = "the time in which a device waits for launches"
NOT_MEASURED = {
    "warm-up-in-window": "the program stays as fast as it was; the numbers about it are better",
    "filled-on-cpu": _COPIES,
    "device-sync": _COPIES,
    "pageable-copies": _COPIES,
    "exposed-copies": _COPIES,
    "exposed-communication": "the time of NCCL's kernels beside those that compute",
    "allocator-calls": "cudaMalloc and cudaFree, which wait for the device",
    "low-device-use": _LAUNCHES,
    "host-bound-launches": _LAUNCHES,
    "tiny-kernels": _LAUNCHES,
    "tf32-unused": "the speed of tensor cores",
    "mixed-precision-unused": "the speed of tensor cores",
}


def processor_times(steps: list[Step]) -> list[float]:
    """The least processor time of each step: other programs add to it, and nothing takes away."""
    best = [float("inf")] * len(steps)
    for _ in range(40):
        for place, step in enumerate(steps):
            start = time.process_time()
            step()
            best[place] = min(best[place], time.process_time() - start)
    return best


@pytest.mark.parametrize("rule", FASTER)
def test_a_step_takes_less_processor_time_with_the_advice(rule: str) -> None:
    with threads(1):
        wrong, right = processor_times([make() for make in FASTER[rule]])
    assert right < wrong * 0.9


@pytest.mark.parametrize("rule", FEWER)
def test_a_step_calls_fewer_operators_with_the_advice(rule: str) -> None:
    *makes, names = FEWER[rule]
    counts = []
    for make in makes:
        called = [event.name for event in record(make()).events()]
        counts.append(sum(any(name in call for name in names) for call in called))
    assert counts[1] < counts[0]


@pytest.mark.parametrize("rule", [*FASTER, *FEWER])
def test_the_finding_claims_a_gain(rule: str) -> None:
    """What is measured above has the sign that the rule says it has."""
    with threads(1):
        trace, is_quiet = undisturbed(PAIRS[rule].wrong)
    found = trace.advise(only=[rule])
    if not list(found) and not is_quiet:
        pytest.skip("other programs took the processor during every recording")
    (finding,) = found
    assert finding.gain is not None
    assert finding.gain.time_ns > 0


def test_every_rule_is_measured_or_says_why_not() -> None:
    assert sorted([*FASTER, *FEWER, *ELSEWHERE, *NOT_MEASURED]) == sorted(documented_rules())
    assert NOT_MEASURED.keys() - DEVICE_PAIRS.keys() == {"warm-up-in-window"}
