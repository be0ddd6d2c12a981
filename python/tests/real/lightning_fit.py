"""Lightning's Trainer, twenty times fit and test: each resets every signal of the process."""

import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
torch.set_num_threads(1)
lightning.seed_everything(0, verbose=False)


class Classifier(lightning.LightningModule):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def test_step(self, batch, number):
        self.log("loss", self.training_step(batch, number))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = DataLoader(TensorDataset(torch.randn(64, 16), torch.randint(0, 2, (64,))), batch_size=16)
model = Classifier()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
for _ in range(20):
    trainer = lightning.Trainer(max_epochs=2, enable_model_summary=False, **quiet)
    trainer.fit(model, data)
    result = trainer.test(model, data, verbose=False)
print("loss", round(result[0]["loss"], 3))
