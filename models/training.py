"""Trains a ranker on impressions of the training users. One thread, reproducible by seed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from catalogue import Catalogue
from population import Impressions, draw_impressions, history_rows, make_population

TRAINING_USERS = 40_000
REQUESTS = 80_000
CANDIDATES = 16
BATCH_REQUESTS = 256
SORTED_BATCHES = 16
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3


def training_impressions(catalogue: Catalogue, seed: int, requests: int = REQUESTS) -> Impressions:
    """What the models of one seed learn from; all models of a seed see the same."""
    people = make_population(catalogue, "training", TRAINING_USERS, seed)
    return draw_impressions(catalogue, people, "training", requests, CANDIDATES, seed)


def batch_tensors(catalogue: Catalogue, shown: Impressions, rows: np.ndarray) -> tuple[Tensor, ...]:
    """The model's five inputs for some requests: user, history, history_length, item, request_index."""
    longest = max(1, int(shown.length[rows].max()))
    candidates = shown.candidate[rows]
    return (
        torch.from_numpy(shown.user[rows]),
        torch.from_numpy(history_rows(catalogue, shown.history_item[rows, :longest], shown.history_sign[rows, :longest])),
        torch.from_numpy(shown.length[rows]),
        torch.from_numpy(catalogue.features[candidates.ravel()]),
        torch.arange(len(rows)).repeat_interleave(candidates.shape[1]),
    )


def loss_of(logits: Tensor, click: Tensor, conversion: Tensor) -> Tensor:
    """LogLoss of the click over all impressions, and of the conversion over the clicked ones where there is such a head."""
    entropy = nn.functional.binary_cross_entropy_with_logits
    click_loss = entropy(logits[:, 0], click)
    if logits.shape[1] == 1:
        return click_loss
    conversion_loss = (entropy(logits[:, 1], conversion, reduction="none") * click).sum() / click.sum().clamp(min=1)
    return click_loss + 0.3 * conversion_loss


def cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def batches(order: np.random.Generator, rows: int, size: int, length: np.ndarray | None) -> list[np.ndarray]:
    """Indices of all rows in random batches; with `length` [rows] those of a batch are of about one length, so that little is padding."""
    shuffled = order.permutation(rows)
    if length is None:
        return cut(shuffled, size)
    alike = [chunk[np.argsort(length[chunk], kind="stable")] for chunk in cut(shuffled, SORTED_BATCHES * size)]
    found = [batch for chunk in alike for batch in cut(chunk, size)]
    return [found[at] for at in order.permutation(len(found))]


def fit(
    model: nn.Module, loss: Callable[[np.ndarray], Tensor], rows: int, epochs: int, seed: int, size: int = BATCH_REQUESTS,
    rate: float = LEARNING_RATE, length: np.ndarray | None = None, after_epoch: Callable[[], None] | None = None,
) -> nn.Module:
    """AdamW, one cycle of the learning rate; returns the model in eval mode.

    `loss` gives the mean loss of the examples at the indices given, of `rows` there are; `size` and `length` see `batches`. `after_epoch` finds the model in eval mode.
    """
    order = np.random.default_rng(seed)
    steps = epochs * math.ceil(rows / size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    for _ in range(epochs):
        model.train()
        for batch in batches(order, rows, size, length):
            optimizer.zero_grad(set_to_none=True)
            loss(batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        if after_epoch is not None:
            after_epoch()
    return model.eval()


def labels(shown: Impressions, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Click and conversion of every candidate of some requests, as floats."""
    return torch.from_numpy(shown.click[rows].ravel().astype(np.float32)), torch.from_numpy(shown.conversion[rows].ravel().astype(np.float32))


def train(ranker: nn.Module, catalogue: Catalogue, shown: Impressions, epochs: int, seed: int) -> nn.Module:
    """The ranker, trained, in eval mode."""

    def loss(rows: np.ndarray) -> Tensor:
        return loss_of(ranker(*batch_tensors(catalogue, shown, rows)), *labels(shown, rows))

    return fit(ranker, loss, len(shown.length), epochs, seed)


def predict(ranker: nn.Module, catalogue: Catalogue, shown: Impressions) -> tuple[np.ndarray, np.ndarray]:
    """P(click) and P(conversion | click), [R, C] each."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(shown.length), BATCH_REQUESTS):
            rows = np.arange(start, min(start + BATCH_REQUESTS, len(shown.length)))
            parts.append(torch.sigmoid(ranker(*batch_tensors(catalogue, shown, rows))).numpy())
    both = np.concatenate(parts).reshape(*shown.candidate.shape, 2)
    return both[..., 0], both[..., 1]
