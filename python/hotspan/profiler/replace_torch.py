"""Importing this module puts hotspan's profiler in the place of ``torch.profiler``, for programs that spell it out.

import torch
import hotspan.profiler.replace_torch

with torch.profiler.profile() as prof: ...
"""

import torch.profiler

import hotspan.profiler

for _name in ("profile", "schedule", "tensorboard_trace_handler"):
    setattr(torch.profiler, _name, getattr(hotspan.profiler, _name))
