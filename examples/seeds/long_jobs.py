"""Cycles of a long loop with a handler of one's own, and FLOPs."""

import torch
import torchvision.models as models

from hotspan.profiler import ProfilerActivity, profile, schedule

device = "cuda" if torch.cuda.is_available() else "cpu"
model = models.resnet18().to(device)
inputs = torch.randn(1, 3, 64, 64).to(device)

my_schedule = schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2)


def trace_handler(p: profile) -> None:
    """Print a table and keep the trace."""
    print(p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
    p.export_chrome_trace(f"trace_{p.step_num}.json")


with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=my_schedule,
    on_trace_ready=trace_handler,
) as p:
    for _ in range(10):
        model(inputs)
        p.step()

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_flops=True) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="flops", row_limit=10))
