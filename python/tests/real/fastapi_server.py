"""A model behind FastAPI and uvicorn."""

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

torch.manual_seed(0)
torch.set_num_threads(1)
app = FastAPI()
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4)).eval()


class Item(BaseModel):
    """A request."""

    x: list[float]


@app.post("/predict")
def predict(item: Item) -> dict[str, list[float]]:
    """Runs in a thread of a pool."""
    with torch.inference_mode():
        return {"y": model(torch.tensor(item.x)).tolist()}


@app.get("/")
async def root() -> dict[str, bool]:
    """Runs in the event loop."""
    return {"ok": True}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
