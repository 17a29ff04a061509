"""MovieLens-100k as a data set of the comparison: will the user rate this film 4 or more, by what they rated before?"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

import movielens
import training
from architectures import Architecture
from evaluation import auc, log_loss

EMBEDDING = 16
EPOCHS_MAX = 2
LEARNING_RATE = 5e-3
HIDDEN_SHARE = 0.15


class WithTables(nn.Module):
    """An architecture behind tables of users and films: what is known of them, and an embedding of each. Logits [R, 1] of ratings.

    Row 0 of an embedding is that of all whom no training row is of; it learns from known ones, some of whom are hidden in training.
    """

    def __init__(self, architecture: Architecture, ratings: movielens.Ratings, trained: np.ndarray):
        super().__init__()
        self.register_buffer("user_rows", known_rows(ratings.user[trained], len(ratings.users)))
        self.register_buffer("item_rows", known_rows(ratings.item[trained], len(ratings.items)))
        self.register_buffer("users", torch.from_numpy(ratings.users))
        self.register_buffer("items", torch.from_numpy(ratings.items))
        self.user_embedding = nn.Embedding(len(ratings.users), EMBEDDING)
        self.item_embedding = nn.Embedding(len(ratings.items), EMBEDDING)
        for table in (self.user_embedding, self.item_embedding):
            nn.init.normal_(table.weight, std=0.05)
        self.scorer = architecture.make(ratings.users.shape[1] + EMBEDDING, ratings.items.shape[1] + EMBEDDING + 1, 1)

    def hidden(self, rows: Tensor) -> Tensor:
        return torch.where(torch.rand(rows.shape) < HIDDEN_SHARE, 0, rows) if self.training else rows

    def described(self, item: Tensor, sign: Tensor) -> Tensor:
        """[..] ids and signs -> [.., item width], the sign last."""
        return torch.cat([self.items[item], self.item_embedding(self.hidden(self.item_rows[item])), sign[..., None]], dim=-1)

    def forward(self, user: Tensor, history_item: Tensor, history_sign: Tensor, history_length: Tensor, item: Tensor) -> Tensor:
        """user, history_length, item [R]; history_item, history_sign [R, T]."""
        person = torch.cat([self.users[user], self.user_embedding(self.hidden(self.user_rows[user]))], dim=1)
        history = self.described(history_item, history_sign) * (history_sign != 0)[..., None]
        return self.scorer(person, history, history_length, self.described(item, torch.zeros(item.shape)))


def known_rows(ids: np.ndarray, rows: int) -> Tensor:
    """By id: its row of the embedding, 0 where it is not among `ids`."""
    return torch.from_numpy(np.where(np.isin(np.arange(rows), ids), np.arange(rows), 0))


class MovieLensData:
    """`fit` trains one architecture and keeps the epoch that is best on later ratings than those trained on; `measure` gives held-out metrics."""

    def __init__(self, kind: str):
        self.kind = kind
        self.ratings = movielens.load()
        self.trained, self.validated, self.held_out = movielens.split(self.ratings, kind)

    def about(self) -> dict:
        strangers = 1 - float(np.isin(self.ratings.user[self.held_out], self.ratings.user[self.trained]).mean())
        return {
            "data": "MovieLens-100k", "synthetic": False, "split": self.kind, "epochsMax": EPOCHS_MAX, "embedding": EMBEDDING,
            "historyRows": movielens.HISTORY_ROWS, "training": {"ratings": len(self.trained)}, "validation": {"ratings": len(self.validated)},
            "heldOut": {"ratings": len(self.held_out), "ofUsersNotTrainedOn": round(strangers, 4)}, "label": f"rating of {movielens.LIKED_FROM} or more",
        }

    def fit(self, architecture: Architecture, seed: int) -> nn.Module:
        model = WithTables(architecture, self.ratings, self.trained)
        best: dict = {"logLoss": np.inf, "weights": None}

        def loss(at: np.ndarray) -> Tensor:
            rows = self.trained[at]
            liked = torch.from_numpy(self.ratings.liked[rows].astype(np.float32))
            return nn.functional.binary_cross_entropy_with_logits(self.logits(model, rows), liked)

        def keep_best() -> None:
            found = log_loss(self.ratings.liked[self.validated], self.predict(model, self.validated))
            if found < best["logLoss"]:
                best.update(logLoss=found, weights=copy.deepcopy(model.state_dict()))

        training.fit(model, loss, len(self.trained), EPOCHS_MAX, seed, rate=LEARNING_RATE, after_epoch=keep_best)
        model.load_state_dict(best["weights"])
        return model

    def logits(self, model: nn.Module, rows: np.ndarray) -> Tensor:
        """[len(rows)]"""
        ratings = self.ratings
        columns = (ratings.user[rows], ratings.history_item[rows], ratings.history_sign[rows], ratings.history_length[rows], ratings.item[rows])
        return model(*(torch.from_numpy(column) for column in columns))[:, 0]

    def predict(self, model: nn.Module, rows: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            parts = [torch.sigmoid(self.logits(model, rows[start : start + 2048])).numpy() for start in range(0, len(rows), 2048)]
        return np.concatenate(parts)

    def measure(self, model: nn.Module) -> dict[str, float]:
        liked, probability = self.ratings.liked[self.held_out], self.predict(model, self.held_out)
        return {"logLoss": log_loss(liked, probability), "auc": auc(liked, probability)}
