"""Trains a ranker on impressions of the training users. One thread, reproducible by seed."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from catalogue import Catalogue
from population import Impressions, draw_impressions, history_rows, make_population

TRAINING_USERS = 40_000
REQUESTS = 80_000
CANDIDATES = 16
BATCH_REQUESTS = 256
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3


def training_impressions(catalogue: Catalogue, seed: int) -> Impressions:
    """What the rankers of one seed learn from; both variants of a seed see the same."""
    people = make_population(catalogue, "training", TRAINING_USERS, seed)
    return draw_impressions(catalogue, people, "training", REQUESTS, CANDIDATES, seed)


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
    """LogLoss of the click over all impressions, and of the conversion over the clicked ones."""
    entropy = nn.functional.binary_cross_entropy_with_logits
    click_loss = entropy(logits[:, 0], click)
    conversion_loss = (entropy(logits[:, 1], conversion, reduction="none") * click).sum() / click.sum().clamp(min=1)
    return click_loss + 0.3 * conversion_loss


def train(ranker: nn.Module, catalogue: Catalogue, shown: Impressions, epochs: int, seed: int) -> nn.Module:
    """AdamW, one cycle of the learning rate; returns the ranker in eval mode."""
    order = np.random.default_rng(seed)
    steps = epochs * math.ceil(len(shown.length) / BATCH_REQUESTS)
    optimizer = torch.optim.AdamW(ranker.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    ranker.train()
    for _ in range(epochs):
        shuffled = order.permutation(len(shown.length))
        for start in range(0, len(shuffled), BATCH_REQUESTS):
            rows = shuffled[start : start + BATCH_REQUESTS]
            click = torch.from_numpy(shown.click[rows].ravel().astype(np.float32))
            conversion = torch.from_numpy(shown.conversion[rows].ravel().astype(np.float32))
            loss = loss_of(ranker(*batch_tensors(catalogue, shown, rows)), click, conversion)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(ranker.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return ranker.eval()


def predict(ranker: nn.Module, catalogue: Catalogue, shown: Impressions) -> tuple[np.ndarray, np.ndarray]:
    """P(click) and P(conversion | click), [R, C] each."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(shown.length), BATCH_REQUESTS):
            rows = np.arange(start, min(start + BATCH_REQUESTS, len(shown.length)))
            parts.append(torch.sigmoid(ranker(*batch_tensors(catalogue, shown, rows))).numpy())
    both = np.concatenate(parts).reshape(*shown.candidate.shape, 2)
    return both[..., 0], both[..., 1]
