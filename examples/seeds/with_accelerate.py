"""The same questions inside Hugging Face Accelerate: time, memory, a trace folder, cycles of a loop, FLOPs."""

import torch
import torchvision.models as models
from accelerate import Accelerator

from hotspan.integrations.accelerate import ProfileKwargs

model = models.resnet18()
inputs = torch.randn(1, 3, 64, 64)

profile_kwargs = ProfileKwargs(activities=["cpu"], record_shapes=True)
accelerator = Accelerator(cpu=True, kwargs_handlers=[profile_kwargs])
model = accelerator.prepare(model)

with accelerator.profile() as prof, torch.no_grad():
    model(inputs)

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))

profile_kwargs = ProfileKwargs(activities=["cpu"], profile_memory=True, record_shapes=True)
with accelerator.profile(profile_kwargs) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10))

profile_kwargs = ProfileKwargs(activities=["cpu", "cuda"], output_trace_dir="trace")
with accelerator.profile(profile_kwargs) as prof:
    model(inputs)


def trace_handler(p) -> None:
    """Print a table and keep the trace."""
    print(p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
    p.export_chrome_trace(f"trace_{p.step_num}.json")


profile_kwargs = ProfileKwargs(
    activities=["cpu", "cuda"],
    schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 2},
    on_trace_ready=trace_handler,
)
with accelerator.profile(profile_kwargs) as prof:
    for _ in range(10):
        model(inputs)
        prof.step()

with accelerator.profile(ProfileKwargs(with_flops=True)) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="flops", row_limit=10))
