"""The synthetic catalogue as a data set of the comparison: training impressions of one seed, and requests of users nobody trained on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import training
from architectures import Architecture
from catalogue import CATALOGUE_SEED, ITEM_WIDTH, make_catalogue
from catalogue_files import make_demo_users
from evaluation import CANDIDATES, CLICK_VALUE, REQUESTS, auc, held_out_impressions, log_loss, measure_ranking
from population import USER_WIDTH, Impressions

EPOCHS = 1
TRAINED_REQUESTS = 64_000
BATCH_REQUESTS = 128
LEARNING_RATE = 8e-3
HEADS = {"two-tower": ("click",)}
ALL_HEADS = ("click", "conversion")


class SyntheticData:
    """`fit` trains one architecture, `measure` gives its held-out metrics."""

    def __init__(self, seed: int):
        self.catalogue = make_catalogue(CATALOGUE_SEED)
        self.people = make_demo_users(self.catalogue)
        self.shown = training.training_impressions(self.catalogue, seed, TRAINED_REQUESTS)
        self.held_out = held_out_impressions(self.catalogue, self.people, seed)

    def about(self) -> dict:
        return {
            "data": "synthetic", "synthetic": True, "catalogueSeed": CATALOGUE_SEED, "epochs": EPOCHS,
            "training": {"users": training.TRAINING_USERS, "requests": TRAINED_REQUESTS, "candidates": training.CANDIDATES},
            "heldOut": {"users": len(self.people.length), "requests": REQUESTS, "candidates": CANDIDATES},
            "label": "click", "truth": truth_metrics(self.held_out),
        }

    def fit(self, architecture: Architecture, seed: int) -> nn.Module:
        model = architecture.make(USER_WIDTH, ITEM_WIDTH, len(HEADS.get(architecture.name, ALL_HEADS)))

        def loss(rows: np.ndarray) -> Tensor:
            return training.loss_of(self.logits(model, self.shown, rows), *training.labels(self.shown, rows))

        return training.fit(model, loss, len(self.shown.length), EPOCHS, seed, BATCH_REQUESTS, LEARNING_RATE, self.shown.length)

    def logits(self, model: nn.Module, shown: Impressions, rows: np.ndarray) -> Tensor:
        """[len(rows)·C, heads]"""
        *inputs, _ = training.batch_tensors(self.catalogue, shown, rows)
        return model(*inputs, candidates=shown.candidate.shape[1])

    def measure(self, model: nn.Module) -> dict[str, float]:
        shown, parts = self.held_out, []
        with torch.inference_mode():
            for start in range(0, len(shown.length), BATCH_REQUESTS):
                rows = np.arange(start, min(start + BATCH_REQUESTS, len(shown.length)))
                parts.append(torch.sigmoid(self.logits(model, shown, rows)).numpy())
        heads = np.concatenate(parts).reshape(*shown.candidate.shape, -1)
        click = heads[..., 0]
        score = click * (CLICK_VALUE + heads[..., 1]) if heads.shape[2] > 1 else click
        ranking = measure_ranking(shown, click, score)
        share = ranking["valueShareAt10"]
        metrics = {"logLoss": log_loss(shown.click, click), "auc": ranking["clickAuc"], "ndcgAt10": ranking["clickNdcgAt10"], "regretAt10": 1 - share}
        if heads.shape[2] > 1:
            clicked = shown.click
            metrics["conversionLogLoss"] = log_loss(shown.conversion[clicked], heads[..., 1][clicked])
        return metrics


def truth_metrics(shown: Impressions) -> dict[str, float]:
    """What the planted truth itself gets on the held-out draws: no model can be expected to do better."""
    return {"logLoss": round(log_loss(shown.click, shown.p_click), 5), "auc": round(auc(shown.click, shown.p_click), 5)}
