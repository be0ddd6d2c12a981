"""Runs a script or a module with a memory profiler as the builtin ``profile``."""

from __future__ import annotations

import builtins
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hotspan._program import Program
from hotspan.memory._readings import choose_backend


@contextmanager
def measuring(profiler: Callable[..., Any], backend: str) -> Iterator[None]:
    """Have ``profile`` as a builtin, and tracemalloc on where it measures."""
    builtins.profile = profiler  # type: ignore[attr-defined]
    starts = choose_backend(backend) == "tracemalloc" and not tracemalloc.is_tracing()
    if starts:
        tracemalloc.start()
    try:
        yield
    finally:
        if starts:
            tracemalloc.stop()


def exec_with_profiler(
    filename: str, profiler: Callable[..., Any], backend: str, passed_args: Sequence[str] = ()
) -> None:
    """Run a script whose ``profile`` is a profiler."""
    _run(Program("script", filename, list(passed_args)), profiler, backend)


def run_module_with_profiler(
    module: str, profiler: Callable[..., Any], backend: str, passed_args: Sequence[str] = ()
) -> None:
    """Run a module whose ``profile`` is a profiler."""
    _run(Program("module", module, list(passed_args)), profiler, backend)


def _run(program: Program, profiler: Callable[..., Any], backend: str) -> None:
    program.prepare()
    with measuring(profiler, backend):
        program.run()
