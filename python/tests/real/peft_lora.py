"""LoRA adapters trained by a plain loop."""

import tiny_text
import torch
from peft import LoraConfig, get_peft_model

torch.manual_seed(0)
torch.set_num_threads(1)
words = tiny_text.tokenizer()
model = get_peft_model(tiny_text.llama(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
tokens = words(tiny_text.sentences(16), return_tensors="pt")["input_ids"]
optimizer = torch.optim.AdamW((weight for weight in model.parameters() if weight.requires_grad), lr=1e-2)
for _ in range(8):
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("trainable", sum(weight.numel() for weight in model.parameters() if weight.requires_grad))
print("loss", round(loss.item(), 3))
