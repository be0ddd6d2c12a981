"""A vision model of timm, trained on pictures from two loader workers."""

import timm
import timm.optim
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Pictures made on the fly."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, row: int):
        made = torch.Generator().manual_seed(row)
        return torch.randn(3, 32, 32, generator=made), row % 4


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = timm.create_model("resnet10t", num_classes=4)
    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=0.01)
    for _ in range(2):
        for pictures, labels in DataLoader(Pictures(), batch_size=8, num_workers=2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
    print("loss", round(loss.item(), 2))
