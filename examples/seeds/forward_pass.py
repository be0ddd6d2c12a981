"""Where a forward pass of ResNet-18 spends its time: by operator, by shape, and with start and stop spelled out."""

import torch
import torchvision.models as models

from hotspan.profiler import ProfilerActivity, profile

model = models.resnet18()
inputs = torch.randn(2, 3, 64, 64)

with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=30))

prof = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
prof.start()

model(inputs)

prof.stop()

print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=30))
