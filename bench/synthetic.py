"""Writes Kineto-like traces of any size: operators, the launches inside them, kernels, and the arrows between them.

Laid out as Kineto lays out its JSON, step by step, with names, ids and nanosecond times that vary as in real
recordings. Streamed: the size of the file is no matter of memory.

Usage: python bench/synthetic.py 5000000 build/bench/synthetic-5m.json [--shapes]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

GROUPS_PER_STEP = 2_000
EVENTS_PER_GROUP = 6
BASE_NANOSECONDS = 1_750_000_000_000_000_000

OPERATORS = [
    (f"aten::{outer}", f"aten::{inner}")
    for outer, inner in [
        ("linear", "addmm"),
        ("conv2d", "convolution"),
        ("batch_norm", "native_batch_norm"),
        ("relu", "clamp_min"),
        ("layer_norm", "native_layer_norm"),
        ("softmax", "_softmax"),
        ("dropout", "native_dropout"),
        ("matmul", "mm"),
        ("cross_entropy_loss", "nll_loss_nd"),
        ("to", "_to_copy"),
        ("einsum", "bmm"),
        ("contiguous", "clone"),
    ]
]
KERNELS = [
    f"void at::native::{kind}_kernel<{width}, at::native::{functor}, at::detail::Array<char*, 2> >"
    f"(int, at::native::{functor}, at::detail::Array<char*, 2>)"
    for kind in ("vectorized_elementwise", "unrolled_elementwise", "reduce")
    for width in (2, 4, 8)
    for functor in ("CUDAFunctor_add<float>", "AddFunctor<float>", "MulFunctor<c10::Half>", "copy_functor")
]

HEADER = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "Synthetic GPU", "totalGlobalMem": 85899345920,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132
    }
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": %d,
  "traceEvents": [
"""
STEP = """  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 4242, "tid": 4242,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0, "Ev Idx": %d
    }
  },
"""
OPERATOR = """  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 4242, "tid": 4242,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0,%s "Sequence number": %d, "Fwd thread id": 0, "Ev Idx": %d
    }
  },
"""
SHAPES = (
    ' "Concrete Inputs": ["", "", "", ""], "Input type": ["float", "float", "float", "Scalar"],'
    ' "Input Strides": [[%d, 1], [%d, 1], [1], []], "Input Dims": [[%d, %d], [%d, %d], [%d], []],'
)
LAUNCH = """  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,
      "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 4242, "tid": 4242, "ts": %s,
    "cat": "ac2g", "name": "ac2g"
  },
"""
KERNEL = """  {
    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": %d,
      "registers per thread": %d,
      "shared memory": 0,
      "blocks per SM": %s,
      "warps per SM": %s,
      "grid": [%d, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %%": %d
    }
  },
  {
    "ph": "f", "id": %d, "pid": 0, "tid": 7, "ts": %s,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
"""
FOOTER = """  {
    "ph": "M", "name": "process_name", "pid": 4242, "tid": 0, "ts": 0,
    "args": {
      "name": "python"
    }
  }
  ],
  "traceName": "synthetic.json"
}
"""


def micros(nanoseconds: int) -> str:
    """Microseconds with nanosecond digits, as Kineto prints them."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def events(groups: int, shapes: bool) -> Iterator[str]:
    """The text of the events: each group is an operator in an operator, its launch, its kernel and two arrow ends."""
    clock = 5_000_000_000
    for first in range(0, groups, GROUPS_PER_STEP):
        step = range(first, min(first + GROUPS_PER_STEP, groups))
        launches: list[str] = []
        begin = clock
        for group in step:
            outer, inner = OPERATORS[group * 7 % len(OPERATORS)]
            long = 9_000 + group * 7919 % 23_456
            rows, columns = 8 << (group % 5), 64 << (group % 4)
            dims = SHAPES % (columns, columns, rows, columns, columns, 64, 64) if shapes else ""
            outer_id, inner_id = group * 3 + 1, group * 3 + 2
            yield OPERATOR % (outer, micros(clock), micros(long), outer_id, dims, group, outer_id)
            yield OPERATOR % (
                inner,
                micros(clock + 1_203),
                micros(long - 2_011),
                inner_id,
                dims,
                group,
                inner_id,
            )
            launched = micros(clock + 3_417)
            started = micros(clock + 12_345 + group % 1_000)
            correlation = group + 100
            blocks = 1 + group * 31 % 512
            launches.append(
                LAUNCH % (launched, micros(2_900 + group % 700), inner_id, correlation, correlation, launched)
            )
            launches.append(
                KERNEL
                % (
                    KERNELS[group * 5 % len(KERNELS)],
                    started,
                    micros(1_500 + group * 104_729 % 60_000),
                    inner_id,
                    correlation,
                    16 + group % 48,
                    round(blocks / 132, 7),
                    round(blocks * 4 / 132, 7),
                    blocks,
                    min(100, blocks // 5),
                    correlation,
                    started,
                )
            )
            clock += long + 1_000
        number = first // GROUPS_PER_STEP
        yield STEP % (number, micros(begin), micros(clock - begin), 10**9 + number, 10**9 + number)
        yield from launches


def write(path: Path, event_count: int, *, shapes: bool = False) -> None:
    """Writes a trace of about this many events, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", buffering=1 << 20) as file:
        file.write(HEADER % BASE_NANOSECONDS)
        file.writelines(events(event_count // EVENTS_PER_GROUP, shapes))
        file.write(FOOTER)
    unfinished.rename(path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("events", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--shapes", action="store_true", help="give operators shapes, types and strides")
    arguments = parser.parse_args()
    write(arguments.path, arguments.events, shapes=arguments.shapes)


if __name__ == "__main__":
    main()
