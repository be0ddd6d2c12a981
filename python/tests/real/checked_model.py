"""Tests of a model, run by pytest; one of them fails on purpose."""

import pytest
import torch


@pytest.mark.parametrize("size", [4, 8, 16])
def test_output_has_the_shape_of_the_input(size: int) -> None:
    assert torch.nn.Linear(size, size)(torch.ones(2, size)).shape == (2, size)


def test_this_one_fails() -> None:
    assert torch.ones(3).sum().item() == 4
