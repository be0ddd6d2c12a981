"""A detector of Ultralytics, trained for an epoch on pictures made here, then used."""

import os
from pathlib import Path

os.environ.setdefault("YOLO_CONFIG_DIR", str(Path("settings").resolve()))
os.environ["YOLO_OFFLINE"] = "true"

import cv2
import numpy
import torch
from ultralytics import YOLO

if __name__ == "__main__":
    torch.set_num_threads(1)
    made = numpy.random.default_rng(0)
    for part in ("images", "labels"):
        Path("data", part).mkdir(parents=True, exist_ok=True)
    for row in range(4):
        cv2.imwrite(f"data/images/{row}.png", made.integers(0, 255, (64, 64, 3), dtype=numpy.uint8))
        Path(f"data/labels/{row}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    Path("data.yaml").write_text(
        f"path: {Path('data').resolve()}\ntrain: images\nval: images\nnames: {{0: thing}}\n"
    )
    model = YOLO("yolov8n.yaml", verbose=False)
    options = {"imgsz": 64, "device": "cpu", "verbose": False}
    model.train(
        data="data.yaml", epochs=1, batch=2, workers=0, plots=False, val=False, amp=False, seed=0, **options
    )
    found = model.predict("data/images/0.png", conf=0.9, **options)
    print("pictures", len(found))
