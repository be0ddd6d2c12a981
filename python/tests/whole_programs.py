"""Ten small programs of about a second, each with what most of its time goes into: for tests of the whole report."""

from __future__ import annotations

#: What the program does, and the activity that takes most of its time after the imports.
PROGRAMS: dict[str, tuple[str, str]] = {
    "cpu_bound": (
        """
import time

def spin():
    total = 0
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        for number in range(1000):
            total += number * number
    return total

spin()
""",
        "Python code",
    ),
    "io_bound": (
        """
import os, threading, time

def feed(end):
    for _ in range(10):
        time.sleep(0.1)
        os.write(end, b"x")
    os.close(end)

reading, writing = os.pipe()
threading.Thread(target=feed, args=(writing,)).start()
while os.read(reading, 1):
    pass
""",
        "I/O",
    ),
    "sleeping": ("import time\nfor _ in range(5):\n    time.sleep(0.2)\n", "sleeping"),
    "threaded": (
        """
import threading, time

def spin():
    end = time.perf_counter() + 0.8
    while time.perf_counter() < end:
        sum(range(1000))

threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
        "waiting for threads or processes",
    ),
    "multiprocess": (
        """
import multiprocessing, time

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(spin, [0.5] * 4)
""",
        "waiting for threads or processes",
    ),
    "numpy_heavy": (
        """
import time
import numpy as np

values = np.random.default_rng(0).random(300_000)
end = time.perf_counter() + 1.2
while time.perf_counter() < end:
    np.sort(values)
""",
        "native code: numpy",
    ),
    "torch_training": (
        """
import time, torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, labels = torch.randn(512, 256), torch.randint(0, 10, (512,))
end = time.perf_counter() + 1.5
while time.perf_counter() < end:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
""",
        "torch operators (CPU)",
    ),
    "torch_compile": (
        """
import time, torch

@torch.compile(backend="aot_eager")
def work(x):
    for _ in range(4):
        x = torch.tanh(x @ x)
    return x

x = torch.randn(512, 512) / 30
end = time.perf_counter() + 1.5
while time.perf_counter() < end:
    work(x)
""",
        "torch operators (CPU)",
    ),
    "asynchronous": (
        """
import asyncio

async def task():
    for _ in range(10):
        await asyncio.sleep(0.1)

async def main():
    await asyncio.gather(*(task() for _ in range(20)))

asyncio.run(main())
""",
        "waiting for events",
    ),
    "short_lived": ("print('done')\n", "Python code"),
}
