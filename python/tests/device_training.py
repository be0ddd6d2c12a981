"""A training on GPUs that never ran, as torch's profiler would have written it, for views of devices and ranks.

Each rank loads a batch, copies it, goes forward and backward through convolutions and a transformer, adds gradients
up with the others, and updates. Rank 1 loads slowly, so the others wait for it. Times are microseconds; nothing is
left to chance.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

Event = dict[str, Any]
STEPS, BLOCKS, STREAM, COMMUNICATION_STREAM = 6, 6, 7, 20
MEBIBYTE = 2**20
H200 = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150_754_820_096,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "numSms": 132,
}


class Work(NamedTuple):
    """An operator, the kernel it launches, how long that takes, and how well it fills the device."""

    operator: str
    kernel: str
    time: float
    blocks: float
    occupancy: int
    shape: list[list[int]]


HIDDEN = [[64, 512, 1024]]
STEM = (
    Work(
        "aten::cudnn_convolution",
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x256x64",
        310,
        5.8,
        25,
        [[64, 3, 224, 224], [1024, 3, 16, 16]],
    ),
    Work(
        "aten::cudnn_batch_norm",
        "void cudnn::bn_fw_tr_1C11_singleread<__nv_bfloat16, 512, true>(cudnn::bnFwTrParams)",
        95,
        7.7,
        50,
        [[64, 1024, 32, 16]],
    ),
)
BLOCK = (
    Work(
        "aten::native_layer_norm",
        "void at::native::(anonymous namespace)::"
        "vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)",
        48,
        15.5,
        100,
        HIDDEN,
    ),
    Work(
        "aten::addmm",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        268,
        5.8,
        19,
        [[3072], [32768, 1024], [1024, 3072]],
    ),
    Work(
        "aten::_flash_attention_forward",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64,"
        " 128, 128, 4, false, false, cutlass::bfloat16_t>>",
        186,
        7.8,
        13,
        [[64, 512, 16, 64]],
    ),
    Work(
        "aten::addmm",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1",
        342,
        7.8,
        25,
        [[4096], [32768, 1024], [1024, 4096]],
    ),
    Work(
        "aten::gelu",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "GeluCUDAKernelImpl, std::array<char*, 2ul>>",
        131,
        62.1,
        100,
        [[64, 512, 4096]],
    ),
    Work(
        "aten::add",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>",
        33,
        31.0,
        100,
        HIDDEN * 2,
    ),
)
UPDATE = Work(
    "aten::_fused_adamw_",
    "void at::native::(anonymous namespace)::"
    "multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4, ADAM_MODE::ADAMW>>",
    74,
    2.4,
    31,
    [],
)


class Rank:
    """One process, its thread and its device, as time goes by on each."""

    def __init__(self, number: int) -> None:
        """Begins at the first step."""
        self.number = number
        self.events: list[Event] = []
        self.host = 1_000.0
        self.streams = {STREAM: 0.0, COMMUNICATION_STREAM: 0.0}
        self.correlation = 0
        self.allocated = 900 * MEBIBYTE
        self.blocks: list[int] = []

    def add(self, name: str, category: str, begin: float, end: float, tid: int = 100, **args: Any) -> None:
        """A span on the host."""
        where = {"pid": 4000 + self.number, "tid": tid}
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "ts": round(begin, 3),
                "dur": round(end - begin, 3),
                **where,
                "args": args,
            }
        )

    def memory(self, change: int) -> None:
        """The allocator gives a block, or takes back the last one."""
        self.allocated += change
        if change > 0:
            self.blocks.append(0x7F00_0000_0000 + len(self.blocks) * change)
        address = self.blocks[-1] if change > 0 else self.blocks.pop()
        args = {
            "Total Allocated": self.allocated,
            "Total Reserved": 4096 * MEBIBYTE,
            "Bytes": change,
            "Addr": address,
            "Device Id": 0,
            "Device Type": 1,
        }
        self.events.append(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "ts": round(self.host, 3),
                "pid": 4000 + self.number,
                "tid": 100,
                "args": args,
            }
        )

    def launch(
        self, call: str, name: str, category: str, time: float, stream: int = STREAM, **args: Any
    ) -> float:
        """A call into the runtime and what the device does for it, after what it was given before; when that begins."""
        self.correlation += 1
        number = self.correlation
        begin, self.host = self.host, self.host + 4.2 + number % 3
        start = max(self.host + 1.5, self.streams[stream])
        self.streams[stream] = start + time
        self.add(call, "cuda_runtime", begin, self.host, correlation=number)
        device = {"device": 0, "context": 1, "stream": stream, "correlation": number, **args}
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 0,
                "tid": stream,
                "ts": round(start, 3),
                "dur": round(time, 3),
                "args": device,
            }
        )
        for phase, at, pid, tid in (("s", begin, 4000 + self.number, 100), ("f", start, 0, stream)):
            self.events.append(
                {
                    "ph": phase,
                    "bp": "e",
                    "id": number,
                    "cat": "ac2g",
                    "name": "ac2g",
                    "ts": round(at, 3),
                    "pid": pid,
                    "tid": tid,
                }
            )
        return start

    def run(self, work: Work, longer: float = 1.0, prefix: str = "") -> None:
        """An operator that launches a kernel."""
        begin = self.host
        self.host += 7
        shape = {
            "registers per thread": 128,
            "blocks per SM": work.blocks,
            "warps per SM": work.blocks * 4,
            "grid": [int(work.blocks * 132), 1, 1],
            "block": [128, 1, 1],
            "est. achieved occupancy %": work.occupancy,
        }
        self.launch("cudaLaunchKernel", work.kernel, "kernel", work.time * longer, **shape)
        self.host += 5
        if prefix:
            self.add(
                f"{prefix}{work.operator.removeprefix('aten::')}Backward0", "cpu_op", begin - 4, self.host + 3
            )
        self.add(
            work.operator,
            "cpu_op",
            begin,
            self.host,
            **{"Input Dims": work.shape, "Input type": ["c10::BFloat16"] * len(work.shape)},
        )
        self.host += 6

    def copy(self, name: str, size: int, rate: float) -> None:
        """A copy between host and device; rate in GB/s."""
        begin = self.host
        self.launch(
            "cudaMemcpyAsync",
            name,
            "gpu_memcpy",
            size / rate / 1e3,
            **{"bytes": size, "memory bandwidth (GB/s)": rate},
        )
        self.add("aten::copy_", "cpu_op", begin - 3, self.host + 2)
        self.host += 4

    def train(self) -> Generator[float, float, None]:
        """All steps; hands out when its collective begins and is told when it is over on every rank."""
        for step in range(STEPS):
            begin = self.host
            loaded = begin + (1_400 if self.number == 0 else 4_600) + 130 * (step % 3)
            self.add(
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                "user_annotation",
                begin + 20,
                loaded,
            )
            self.host = loaded + 30
            self.copy("Memcpy HtoD (Pageable -> Device)", 64 * 3 * 224 * 224 * 4, 11.8)
            self.copy("Memcpy HtoD (Pinned -> Device)", 64 * 8, 0.4)
            self.copy("Memcpy DtoD (Device -> Device)", 64 * MEBIBYTE, 1850.0)
            forward = self.host
            for work in (*STEM, *BLOCK * BLOCKS):
                self.run(work)
                self.memory(24 * MEBIBYTE)
            self.add("forward", "user_annotation", forward, self.host)
            backward = self.host
            for place, work in enumerate(reversed((*STEM, *BLOCK * BLOCKS))):
                self.run(work, 2.0, "autograd::engine::evaluate_function: ")
                self.memory(-24 * MEBIBYTE)
                if place == len(BLOCK) * BLOCKS // 2:
                    yield from self.add_up(168 * MEBIBYTE, 2_150)
            yield from self.add_up(172 * MEBIBYTE, 2_240)
            self.add("backward", "user_annotation", backward, self.host)
            update = self.host
            self.streams[STREAM] = max(self.streams.values())
            for _ in range(8):
                self.run(UPDATE)
            self.add("Optimizer.step#AdamW.step", "user_annotation", update, self.host)
            self.read_loss()
            self.add(f"ProfilerStep#{step + 10}", "user_annotation", begin, self.host)
            self.host += 12

    def add_up(self, size: int, time: float) -> Generator[float, float, None]:
        """An all-reduce, on a stream of its own."""
        begin = self.host
        self.streams[COMMUNICATION_STREAM] = max(self.streams.values())
        known = {
            "Collective name": "allreduce",
            "In msg nelems": size // 2,
            "Out msg nelems": size // 2,
            "Group size": 2,
            "dtype": "BFloat16",
            "Process Group Name": "0",
        }
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        shape = {"blocks per SM": 0.24, "est. achieved occupancy %": 2}
        start = self.launch("cudaLaunchKernelExC", name, "kernel", 0, COMMUNICATION_STREAM, **known, **shape)
        kernel = self.events[-3]
        over = (yield start) + time
        kernel["dur"] = round(over - start, 3)
        self.streams[COMMUNICATION_STREAM] = over
        self.add("nccl:all_reduce", "user_annotation", begin - 2, self.host + 3)
        self.host += 8

    def read_loss(self) -> None:
        """`loss.item()`: waits for all that the device has to do."""
        begin = self.host
        self.host += 5
        self.launch("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 1.6, bytes=4)
        waiting, self.host = self.host + 1, self.streams[STREAM] + 9
        self.add("cudaStreamSynchronize", "cuda_runtime", waiting, self.host, correlation=0)
        self.add("aten::_local_scalar_dense", "cpu_op", begin + 2, self.host + 2)
        self.add("aten::item", "cpu_op", begin, self.host + 4)
        self.host += 8


def write(folder: Path, ranks: int = 2) -> list[Path]:
    """The trace of each rank, as TensorBoard's handler names them."""
    processes = [Rank(number) for number in range(ranks)]
    trainings = [process.train() for process in processes]
    starts = [next(training) for training in trainings]
    while len(starts) == ranks:
        together, starts = max(starts), []
        for training in trainings:
            with contextlib.suppress(StopIteration):
                starts.append(training.send(together))
    paths = []
    for process in processes:
        path = folder / f"worker{process.number}.1700000000000.pt.trace.json"
        job = {"backend": "nccl", "rank": process.number, "world_size": ranks}
        host = 4000 + process.number
        names = [
            (host, 0, "process_name", "python train.py"),
            (host, 100, "thread_name", "thread 100 (python)"),
            (0, 0, "process_name", "GPU 0"),
            (0, STREAM, "thread_name", f"stream {STREAM}"),
            (0, COMMUNICATION_STREAM, "thread_name", f"stream {COMMUNICATION_STREAM} (NCCL)"),
        ]
        named = [
            {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
            for pid, tid, kind, name in names
        ]
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [H200],
            "distributedInfo": job,
            "record_shapes": 1,
            "traceEvents": named + process.events,
        }
        path.write_text(json.dumps(trace))
        paths.append(path)
    return paths
