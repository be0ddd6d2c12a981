"""Whole programs for the advice tests: what a rule should find, the same mended, and what each must not be told."""

from __future__ import annotations

from typing import NamedTuple

LOADING = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(256, 64), torch.randint(0, 4, (256,)))
    loader = DataLoader(data, batch_size=64, num_workers=2, persistent_workers={persistent})
    model = torch.nn.Linear(64, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(8):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

COLLECTING = """
import gc

class Node:
    pass

{setup}
held = []
for number in range(300_000):
    node = Node()
    node.other, node.number = [node], number
    held.append(node)
{freeze}
for _ in range(15):
    garbage = [[] for _ in range(2_000)]
    for one in garbage:
        one.append(one)
    gc.collect()
"""


class Pair(NamedTuple):
    """Two programs; the second is the first with the advice taken."""

    wrong: str
    right: str


PAIRS: dict[str, Pair] = {
    "workers-restarted": Pair(LOADING.format(persistent=False), LOADING.format(persistent=True)),
    "garbage-collection": Pair(
        COLLECTING.format(setup="", freeze=""),
        COLLECTING.format(setup="gc.set_threshold(1_000_000, 20, 100)", freeze="gc.freeze()"),
    ),
}

#: Programs that rules were wrong about, and what they must not say of them.
INNOCENT: dict[str, tuple[str, set[str]]] = {
    "small float32 convolutions": (
        """
import torch
torch.set_num_threads(1)
conv, picture = torch.nn.Conv2d(64, 64, 3, padding=1), torch.randn(1, 64, 16, 16)
with torch.inference_mode():
    for _ in range(300):
        conv(picture)
""",
        {"fp64-slow-path"},
    ),
    "an optimizer that calls a closure": (
        """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(300, 300) for _ in range(6)])
optimizer, x = torch.optim.AdamW(model.parameters(), foreach=False), torch.randn(2000, 300)
def closure():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss
for _ in range(12):
    optimizer.step(closure)
""",
        {"for-loop-optimizer"},
    ),
    "a server that waits, in three threads": (
        """
import threading, time, torch
layer = torch.nn.Linear(64, 4)
def serve():
    for _ in range(40):
        with torch.inference_mode():
            layer(torch.tensor([0.1] * 64)).tolist()
        time.sleep(0.02)
threads = [threading.Thread(target=serve) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
        {"numpy-round-trip", "scalar-read", "many-tiny-ops", "thread-oversubscription"},
    ),
    "arrays in, arrays out": (
        """
import numpy, time, torch
layer, noise = torch.nn.Linear(64, 4), numpy.random.default_rng(0)
with torch.inference_mode():
    for _ in range(40):
        array = numpy.sort(noise.random((200_000,), dtype=numpy.float32))[:64]
        layer(torch.from_numpy(array.copy())).numpy().sum()
        time.sleep(0.01)
""",
        {"numpy-round-trip"},
    ),
}
