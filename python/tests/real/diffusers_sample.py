"""A picture drawn from noise by a small diffusion pipeline."""

import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel

torch.manual_seed(0)
torch.set_num_threads(1)
model = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    block_out_channels=(32, 32),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    norm_num_groups=8,
    layers_per_block=1,
)
pipeline = DDIMPipeline(model, DDIMScheduler())
pipeline.set_progress_bar_config(disable=True)
picture = pipeline(generator=torch.Generator().manual_seed(1), num_inference_steps=10).images[0]
print(picture.size, sum(picture.convert("L").tobytes()) // 1000)
