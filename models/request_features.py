"""What every architecture is given of a request: its user, and its history in pools. So none has an input that another lacks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

POOLS = 3
RECENCY_ROWS = 10.0


def ages(history: Tensor, history_length: Tensor) -> tuple[Tensor, Tensor]:
    """Both [B, T]: how many rows are newer than each, and 1 where a row is real, 0 where it is padding."""
    steps = torch.arange(history.shape[1], device=history.device)
    age = (history_length[:, None] - 1 - steps[None, :]).to(history.dtype)
    return torch.relu(age), (steps[None, :] < history_length[:, None]).to(history.dtype)


def recency(age: Tensor) -> Tensor:
    return torch.exp(-age / RECENCY_ROWS)


class RequestFeatures(nn.Module):
    """[B, user width], [B, T, row width], [B] -> [B, width]: the user, three pools of the history's rows, and how many rows there are.

    The last number of a row is its sign, +1 liked and -1 skipped. The pools are the mean of what was liked, the mean of what was skipped, and the
    mean of all rows by sign and recency. An empty history pools to zeros.
    """

    def __init__(self, user_width: int, row_width: int):
        super().__init__()
        self.width = user_width + POOLS * row_width + 1

    def forward(self, user: Tensor, history: Tensor, history_length: Tensor) -> Tensor:
        age, real = ages(history, history_length)
        sign = history[:, :, -1] * real
        liked, skipped, recent = torch.relu(sign), torch.relu(-sign), sign * recency(age)
        weights = torch.stack([liked, skipped, recent], dim=1)
        total = torch.abs(weights).sum(dim=2, keepdim=True)
        pooled = (weights / torch.clamp(total, min=1e-6)) @ history
        return torch.cat([user, pooled.flatten(1), torch.log1p(history_length[:, None].to(user.dtype)) / 4], dim=1)
