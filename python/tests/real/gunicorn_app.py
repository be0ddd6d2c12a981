"""A model behind gunicorn: a master that forks its workers."""

import json
from typing import Any

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 2).eval()


def app(_environment: dict[str, Any], start_response: Any) -> list[bytes]:
    """A WSGI application."""
    with torch.inference_mode():
        answer = model(torch.ones(8)).tolist()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]
