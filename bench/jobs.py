"""What each tool is asked to do: read a trace and answer which operators and kernels took the time.

A job's first half imports the tool, its second half works on a file; only the second is measured. Each returns a line
that says what it found, so that a run can be seen to have done the work.
"""

from __future__ import annotations

import gzip
import json
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

Work = Callable[[Path], str]


def hotspan_answers() -> Work:
    """The whole question, through the Python package."""
    import hotspan

    def work(path: Path) -> str:
        trace = hotspan.open(path)
        averages = trace.key_averages()
        return f"{len(averages)} rows, {len(trace.kernels())} kernels"

    return work


def hotspan_open() -> Work:
    """Only reading, and what the trace takes afterwards."""
    import hotspan

    def work(path: Path) -> str:
        trace = hotspan.open(path)
        return json.dumps({"spans": len(trace.spans), "bytes": trace.nbytes, "losses": trace.losses})

    return work


def json_load() -> Work:
    """No analysis at all: Python's own JSON reader, for scale."""

    def work(path: Path) -> str:
        raw = path.read_bytes()
        content = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        return f"{len(content['traceEvents'])} events"

    return work


def holistic_trace_analysis() -> Work:
    """HTA: its loader and its kernel breakdown. It has no operator table."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis

    def work(path: Path) -> str:
        analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
        _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1_000)
        return f"{len(kernels)} kernels"

    return work


def tensorboard_plugin() -> Work:
    """torch-tb-profiler: what its loader does for one file, ending in its operator and kernel tables."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    def work(path: Path) -> str:
        with tempfile.TemporaryDirectory() as cache:
            data = RunProfileData.parse("worker0", None, str(path), cache)
            profile = RunGenerator("worker0", None, data).generate_run_profile()
        operators = profile.operation_table_by_name["data"]
        kernels = profile.kernel_table["data"]["rows"] if profile.kernel_table else []
        return f"{len(operators)} operators, {len(kernels)} kernels"

    return work


JOBS: dict[str, Callable[[], Work]] = {
    "hotspan": hotspan_answers,
    "hotspan-open": hotspan_open,
    "json.load": json_load,
    "HTA": holistic_trace_analysis,
    "torch-tb-profiler": tensorboard_plugin,
}
