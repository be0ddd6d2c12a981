"""Three steps of a loop after one of warm-up, written for TensorBoard; torch.profiler is spelled out in the program."""

import torch
import torchvision.models as models

import hotspan.profiler.replace_torch  # noqa: F401

model = models.resnet18()
inputs = torch.randn(1, 3, 64, 64)

dir_name = "./"

with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
    schedule=torch.profiler.schedule(wait=0, warmup=1, active=3),
    on_trace_ready=torch.profiler.tensorboard_trace_handler(dir_name),
) as prof:
    for _ in range(8):
        model(inputs)
        prof.step()
