"""A classifier trained by the Trainer of transformers, with evaluation."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
torch.set_num_threads(1)
config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
data = [{"input_ids": torch.randint(0, 64, (12,)), "labels": torch.tensor(row % 2)} for row in range(48)]
arguments = TrainingArguments(
    "out",
    max_steps=12,
    per_device_train_batch_size=8,
    report_to=[],
    disable_tqdm=True,
    logging_strategy="no",
    save_strategy="no",
    use_cpu=True,
)
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=data, eval_dataset=data[:16]
)
trained = trainer.train()
print("steps", trained.global_step, "loss", round(trained.training_loss, 3))
print("evaluated", round(trainer.evaluate()["eval_loss"], 3))
