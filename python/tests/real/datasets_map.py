"""A dataset mapped by two processes, then read by a DataLoader with workers."""

import datasets
import torch
from torch.utils.data import DataLoader


def add_length(row: dict[str, str]) -> dict[str, int]:
    """What each process computes."""
    return {"length": int(torch.tensor([len(word) for word in row["text"].split()]).sum())}


if __name__ == "__main__":
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    table = datasets.Dataset.from_dict({"text": [f"row {number} of many" for number in range(64)]})
    mapped = table.map(add_length, num_proc=2, load_from_cache_file=False).with_format("torch")
    total = sum(int(batch["length"].sum()) for batch in DataLoader(mapped, batch_size=8, num_workers=2))
    print("rows", len(mapped), "total", total)
