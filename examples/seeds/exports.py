"""CPU and CUDA time, memory, a Chrome trace, and a TensorBoard folder, each in a few lines."""

import torch
import torchvision.models as models

from hotspan.profiler import ProfilerActivity, profile, tensorboard_trace_handler

device = "cuda" if torch.cuda.is_available() else "cpu"
model = models.resnet18().to(device)
inputs = torch.randn(1, 3, 64, 64).to(device)
dataloader = [inputs] * 3

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
prof.export_chrome_trace("trace.json")

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    model(inputs)

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    on_trace_ready=tensorboard_trace_handler("./log_dir"),
) as prof:
    for batch in dataloader:
        model(batch)
        prof.step()
