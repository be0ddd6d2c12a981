"""The older interface: time, shapes and memory of a double-precision ResNet-18."""

import torch
import torchvision.models as models

import hotspan.profiler.autograd as profiler

torch.set_default_dtype(torch.float64)
model = models.resnet18()
inputs = torch.randn(2, 3, 64, 64)

with profiler.profile() as prof:
    model(inputs)
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))

with profiler.profile(record_shapes=True) as prof:
    model(inputs)
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))

with profiler.profile(profile_memory=True) as prof:
    model(inputs)
print(prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10))
