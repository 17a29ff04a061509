"""The ranking model in PyTorch. Request side once per request, candidate side once per candidate.

It follows Generalized Layer Masking: no candidate reaches the request side or another candidate, so the request side's
share of every layer is computed once per request and handed to its candidates through `request_index`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from catalogue import ITEM_WIDTH
from population import USER_WIDTH

PADDING_LOGIT = -1e9
HEADS = ("click", "conversion")


def padding_mask(history: Tensor, history_length: Tensor) -> Tensor:
    """[B, T]: 0 where a row is real, a very negative logit where it is padding."""
    steps = torch.arange(history.shape[1], device=history.device)
    return (steps[None, :] >= history_length[:, None]).to(history.dtype) * PADDING_LOGIT


class HistoryPooling(nn.Module):
    """Attention pooling of the history with queries from the user: [B, 64], [B, T, 32] -> [B, queries * width].

    A sink with logit 0 and value 0 stands beside the rows, so an empty history is defined and pools to zeros.
    """

    def __init__(self, queries: int, width: int):
        super().__init__()
        self.queries = queries
        self.width = width
        self.query = nn.Linear(USER_WIDTH, queries * width)
        self.key = nn.Linear(ITEM_WIDTH, width)
        self.value = nn.Linear(ITEM_WIDTH, width, bias=False)

    def forward(self, user: Tensor, history: Tensor, mask: Tensor) -> Tensor:
        query = self.query(user).unflatten(1, (self.queries, self.width))
        logits = query @ self.key(history).transpose(1, 2) / math.sqrt(self.width) + mask[:, None, :]
        sink = torch.zeros_like(query[:, :, :1])
        weights = torch.softmax(torch.cat([sink, logits], dim=2), dim=2)[:, :, 1:]
        return (weights @ self.value(history)).flatten(1)


class Ranker(nn.Module):
    """GLM-DCNv2: cross layers in two groups, then a small MLP with two heads. Variants differ in widths only.

    request    r_{l+1} = r_0 * (R_l r_l) + r_l                                [B, request_width]
    candidate  c_{l+1} = c_0 * (Q_l r_l[request_index] + C_l c_l) + c_l   [N, candidate_width]

    The candidate's layers see the request only through Q_l r_l: these, side by side, are the *artefact* [B, width], the one thing that
    is gathered per candidate. Cross layers after DCNv2 (Wang et al. 2021).
    """

    def __init__(self, request_width: int, candidate_width: int, queries: int, pooled_width: int, layers: int, hidden: tuple[int, int]):
        super().__init__()
        self.pooling = HistoryPooling(queries, pooled_width)
        self.request_in = nn.Linear(USER_WIDTH + queries * pooled_width, request_width)
        self.candidate_in = nn.Linear(ITEM_WIDTH, candidate_width)
        self.request_cross = nn.ModuleList(nn.Linear(request_width, request_width) for _ in range(layers))
        self.to_candidate = nn.ModuleList(nn.Linear(request_width, candidate_width) for _ in range(layers))
        self.candidate_cross = nn.ModuleList(nn.Linear(candidate_width, candidate_width, bias=False) for _ in range(layers))
        self.to_hidden = nn.Linear(request_width, hidden[0])
        self.candidate_hidden = nn.Linear(candidate_width, hidden[0], bias=False)
        self.hidden = nn.Linear(hidden[0], hidden[1])
        self.heads = nn.Linear(hidden[1], len(HEADS))
        self.widths = [candidate_width] * layers + [hidden[0]]

    def artefact(self, user: Tensor, history: Tensor, history_length: Tensor) -> Tensor:
        """Everything candidates need from their request: [B, sum(widths)]."""
        pooled = self.pooling(user, history, padding_mask(history, history_length))
        first = torch.relu(self.request_in(torch.cat([user, pooled], dim=1)))
        state, parts = first, []
        for cross, handed in zip(self.request_cross, self.to_candidate, strict=True):
            parts.append(handed(state))
            state = first * cross(state) + state
        return torch.cat([*parts, self.to_hidden(state)], dim=1)

    def logits(self, artefact: Tensor, item: Tensor) -> Tensor:
        """Head logits [N, 2] from gathered artefact rows [N, sum(widths)] and items [N, 32]."""
        *crossed, handed = torch.split(artefact, self.widths, dim=1)
        first = self.candidate_in(item)
        state = first
        for cross, from_request in zip(self.candidate_cross, crossed, strict=True):
            state = first * (from_request + cross(state)) + state
        deep = torch.relu(handed + self.candidate_hidden(state))
        return self.heads(torch.relu(self.hidden(deep)))

    def forward(self, user, history, history_length, item, request_index) -> Tensor:
        """Head logits [N, 2]. user [B, 64], history [B, T, 32], history_length int64 [B], item [N, 32], request_index int64 [N]."""
        artefact = self.artefact(user, history, history_length)
        return self.logits(artefact.index_select(0, request_index), item)


class Probabilities(nn.Module):
    """What is exported: the heads as separate outputs [N], click and conversion given a click.

    The logistic function is written out: onnxruntime's Sigmoid comes as 0.5 plus a float32, so a probability of 1e-4 is known to 1e-3
    of itself only, and a last-bit difference of the logit between two batch shapes shows as more than 1e-5.
    """

    def __init__(self, ranker: nn.Module):
        super().__init__()
        self.ranker = ranker

    def forward(self, user, history, history_length, item, request_index) -> tuple[Tensor, Tensor]:
        probabilities = 1 / (1 + torch.exp(-self.ranker(user, history, history_length, item, request_index)))
        return probabilities[:, 0], probabilities[:, 1]
