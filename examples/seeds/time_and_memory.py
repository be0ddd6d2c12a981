"""Time under a label of one's own, and the memory that operators take, of one ResNet-18."""

import torch
import torchvision.models as models

from hotspan.profiler import ProfilerActivity, profile, record_function


def memory() -> None:
    """Which operators allocate."""
    model = models.resnet18()
    inputs = torch.randn(2, 3, 64, 64)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof:
        model(inputs)
    print(prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10))


def time() -> None:
    """Which operators take their time, and with which inputs."""
    model = models.resnet18()
    inputs = torch.randn(2, 3, 64, 64)
    with (
        profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof,
        record_function("model_inference"),
    ):
        model(inputs)
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
    print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))


if __name__ == "__main__":
    time()
    memory()
