"""Work spread over two worker processes by Dask."""

import torch
from distributed import Client, LocalCluster


def work(number: int) -> int:
    """A task."""
    return int((torch.ones(16, 16) * number).sum())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        print(sorted(client.gather(client.map(work, range(10)))))
