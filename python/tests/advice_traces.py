"""Traces as a device would give them, made by hand: for each rule about devices one with the fault and one without.

Times are microseconds. A step lasts 10 ms; the host is thread 1 of process 1, the device is stream 7 of process 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from conftest import complete

Event = dict[str, Any]
STEP = 10_000
STEPS = 3


class Recorded(NamedTuple):
    """The events of a trace and what it says about itself."""

    events: list[Event]
    metadata: dict[str, Any]


def launched(
    operator: str,
    work: str,
    start: float,
    duration: float,
    *,
    category: str = "kernel",
    call: str = "cudaLaunchKernel",
    call_duration: float = 4,
    delay: float = 5,
    number: int,
    size: int | None = None,
) -> list[Event]:
    """An operator, its call into the runtime, and what the device did for it."""
    args: dict[str, Any] = {"correlation": number, "External id": number + 100_000, "device": 0, "stream": 7}
    if size is not None:
        args["bytes"] = size
    call_args = {"correlation": number, "External id": number + 100_000}
    return [
        complete(operator, start, call_duration + 2, args={"External id": number + 100_000}),
        complete(call, start + 1, call_duration, cat="cuda_runtime", args=call_args),
        complete(work, start + delay, duration, cat=category, pid=0, tid=7, args=args),
    ]


def recorded(per_step: list[list[Event]], capability: int = 8) -> Recorded:
    """A trace of these events in each of three steps; the device also computes for 6 ms of each."""
    events: list[Event] = []
    for step in range(STEPS):
        start = step * STEP
        events.append(complete(f"ProfilerStep#{step}", start, STEP, cat="user_annotation"))
        for event in (event for group in per_step for event in group):
            args = dict(event.get("args", {}))
            for key in ("correlation", "External id"):
                if key in args:
                    args[key] += step * 10_000
            events.append({**event, "ts": event["ts"] + start, "args": args})
    device = {"id": 0, "name": "Test", "computeMajor": capability, "computeMinor": 0}
    return Recorded(events, {"deviceProperties": [device]})


GEMM = "sm80_xmma_gemm_bf16_tensorop_128x128"


def busy(duration: float = 9_000, kernel: str = GEMM, operator: str = "aten::relu") -> list[Event]:
    """Work that keeps the device from being idle."""
    return launched(operator, kernel, 10, duration, number=1)


def copy(name: str, operator: str = "aten::copy_", **options: Any) -> list[Event]:
    """A copy to or from the device."""
    return launched(
        operator, name, 9_200, 300, category="gpu_memcpy", call="cudaMemcpyAsync", number=2, **options
    )


def filled(maker: str) -> list[Event]:
    """A tensor is made and then copied to the device."""
    upload = copy("Memcpy HtoD (Pageable -> Device)", "aten::to", call_duration=300)
    return [complete(maker, 9_100, 90, args={"External id": 777}), *upload]


def waiting(call: str, duration: float, operator: str) -> list[Event]:
    """An operator that waits for the device."""
    wait = complete(call, 9_101, duration, cat="cuda_runtime", args={"correlation": 3, "External id": 999})
    after = complete("aten::add", 9_900, 5, args={"External id": 998})
    return [complete(operator, 9_100, duration + 2, args={"External id": 999}), wait, after]


def small_kernels(duration: float, every: float, delay: float = 5) -> list[list[Event]]:
    """A hundred kernels, one after the other."""
    return [
        launched("aten::add", "add_kernel", 20 + every * place, duration, number=10 + place, delay=delay)
        for place in range(100)
    ]


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
PINNED, PAGEABLE = "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"

DEVICE_PAIRS: dict[str, tuple[Recorded, Recorded]] = {
    "filled-on-cpu": (
        recorded([busy(), filled("aten::zeros")]),
        recorded([busy(), filled("aten::stack")]),
    ),
    "device-sync": (
        recorded([busy(), waiting("cudaStreamSynchronize", 700, "aten::nonzero")]),
        recorded([busy(), waiting("cudaStreamSynchronize", 7, "aten::nonzero")]),
    ),
    "pageable-copies": (
        recorded([busy(), copy(PAGEABLE, size=1_000_000, call_duration=300)]),
        recorded([busy(), copy(PINNED, size=1_000_000)]),
    ),
    "exposed-copies": (
        recorded([busy(9_000), copy(PINNED)]),
        recorded([busy(9_600), copy(PINNED)]),
    ),
    "exposed-communication": (
        recorded([busy(6_000), launched("c10d::allreduce_", NCCL, 6_100, 3_000, number=2)]),
        recorded([busy(9_500), launched("c10d::allreduce_", NCCL, 6_100, 3_000, number=2)]),
    ),
    "allocator-calls": (
        recorded([busy(), waiting("cudaMalloc", 400, "aten::empty")]),
        recorded([busy(), waiting("cudaMalloc", 10, "aten::empty")]),
    ),
    "low-device-use": (recorded([busy(3_000)]), recorded([busy(8_000)])),
    "host-bound-launches": (
        recorded(small_kernels(30, every=95)),
        # As many kernels, but launched long before the device gets to them.
        recorded(small_kernels(90, every=91, delay=600)),
    ),
    "tiny-kernels": (recorded(small_kernels(3, every=95)), recorded(small_kernels(90, every=95))),
    "tf32-unused": (
        recorded([busy(9_000, "ampere_sgemm_128x64_nn", "aten::mm")]),
        recorded([busy(9_000, "ampere_sgemm_128x64_nn", "aten::mm")], capability=7),
    ),
    "mixed-precision-unused": (
        recorded([busy(9_000, "volta_sgemm_128x64_nn", "aten::mm")]),
        recorded([busy(9_000, "sm80_xmma_gemm_bf16_s16816", "aten::mm")]),
    ),
}
