"""What can be done with a finished window: ``on_trace_ready`` handlers."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from hotspan.profiler._results import Results


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Results], None]:
    """Return a handler that writes each window into a folder, named as TensorBoard and HTA expect.

    A file that cannot be written is no reason to end a training run: there is a warning, and the trace stays in
    ``prof.trace``.
    """
    del use_python_export
    folder = Path(dir_name)

    def write(profile: Results) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = folder / f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            profile.export_chrome_trace(path)
        except OSError as error:
            warnings.warn(
                f"the trace was not written: {error}. "
                "hint: it is kept in prof.trace; prof.save(path) writes it elsewhere",
                RuntimeWarning,
                stacklevel=3,
            )

    return write
