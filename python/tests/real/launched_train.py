"""Ranks that train together over gloo, started by mpirun, srun or torchrun; rank 1 works more than the others."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def told(*names: str) -> int:
    """What the launcher says, in its own variables."""
    return next(int(os.environ[name]) for name in names if name in os.environ)


torch.set_num_threads(1)
rank = told("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
size = told("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
meeting = Path("meeting").resolve().as_uri()
dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    if rank == 1:
        for _ in range(20):
            torch.randn(300, 300) @ torch.randn(300, 300)
    loss = model(torch.randn(8, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach().clone()
dist.all_reduce(total)
if rank == 0:
    print("world", size, "loss", round(total.item(), 3))
dist.destroy_process_group()
