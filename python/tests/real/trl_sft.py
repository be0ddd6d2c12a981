"""Supervised fine-tuning by trl's SFTTrainer."""

import datasets
import tiny_text
import torch
from transformers import set_seed
from trl import SFTConfig, SFTTrainer

set_seed(0)
torch.set_num_threads(1)
datasets.disable_progress_bars()
table = datasets.Dataset.from_dict({"text": tiny_text.sentences(32)})
config = SFTConfig(
    "out",
    max_steps=6,
    per_device_train_batch_size=4,
    max_length=16,
    report_to=[],
    disable_tqdm=True,
    logging_strategy="no",
    save_strategy="no",
    use_cpu=True,
    bf16=False,
)
trainer = SFTTrainer(tiny_text.llama(), config, train_dataset=table, processing_class=tiny_text.tokenizer())
print("steps", trainer.train().global_step)
