"""Waiting for CUDA devices at the end of a recording, for profiles and for ``hotspan run``."""

from __future__ import annotations

import torch

from hotspan._notices import say_once


def wait() -> None:
    """Wait for the devices that this process works on, so that their last kernels are in the recording."""
    if not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
        return
    try:
        for index in range(torch.cuda.device_count()):
            if torch._C._cuda_hasPrimaryContext(index):
                torch.cuda.synchronize(index)
    except RuntimeError as error:
        # The program hears of its error from its own next call.
        say_once(f"the last device work may be missing: {str(error).splitlines()[0]}")
