"""Tasks and an actor of Ray that use torch in other processes."""

import os
import time

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

import ray
import torch


@ray.remote
def total(seed: int) -> float:
    """A task."""
    torch.manual_seed(seed)
    return round(float((torch.ones(8, 8) @ torch.eye(8)).sum()), 1)


@ray.remote
class Counter:
    """An actor."""

    def __init__(self) -> None:
        self.count = torch.zeros(1)

    def add(self, number: int) -> int:
        """Count on."""
        self.count += number
        return int(self.count)


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    print(ray.get([total.remote(seed) for seed in range(4)]))
    counter = Counter.remote()
    print(ray.get([counter.add.remote(number) for number in range(4)]))
    # Ray ends its workers from C++, without a word; hotspan has written what they did a second ago.
    time.sleep(3)
    ray.shutdown()
