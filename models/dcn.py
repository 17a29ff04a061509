"""DCNv2, small: the baseline, and with the mask its GLM form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from layers import Compression, CrossNetwork, Groups, Perceptron
from request_features import RequestFeatures

TOKEN_WIDTH = 8


class Tokens(nn.Module):
    """Features of both sides as tokens side by side: [B, request width], [B·candidates, item width] -> [B·candidates, tokens.total, TOKEN_WIDTH]."""

    def __init__(self, request_width: int, item_width: int, tokens: Groups):
        super().__init__()
        self.tokens = tokens
        self.request = nn.Linear(request_width, tokens.request * TOKEN_WIDTH)
        self.candidate = nn.Linear(item_width, tokens.candidate * TOKEN_WIDTH)

    def forward(self, request: Tensor, item: Tensor, candidates: int) -> Tensor:
        of_request = per_candidate(self.request(request), candidates).unflatten(1, (self.tokens.request, TOKEN_WIDTH))
        return torch.cat([of_request, self.candidate(item).unflatten(1, (self.tokens.candidate, TOKEN_WIDTH))], dim=1)


class Trunk(nn.Module):
    """Tokens to logits: linear compression, cross layers, an MLP, heads. [N, tokens.total, TOKEN_WIDTH] -> [N, heads]."""

    def __init__(self, tokens: Groups, kept: Groups, layers: int, hidden: list[Groups], heads: int, masked: bool):
        super().__init__()
        width = kept.times(TOKEN_WIDTH)
        self.compression = Compression(tokens, kept, masked)
        self.cross = CrossNetwork(width, layers, masked)
        self.deep = Perceptron([width, *hidden], masked)
        self.heads = nn.Linear(hidden[-1].total, heads)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.heads(self.deep(self.cross(self.compression(tokens).flatten(1))))


class Dcn(nn.Module):
    """Logits [B·candidates, heads] from user [B, U], history [B, T, I], history_length [B] and item [B·candidates, I].

    `candidates` rows of `item` belong to each request, in its order. With 1 it is the form that is exported: a row per candidate everywhere.
    """

    def __init__(self, user_width: int, item_width: int, tokens: Groups, kept: Groups, layers: int, hidden: list[Groups], heads: int, masked: bool):
        super().__init__()
        self.features = RequestFeatures(user_width, item_width)
        self.tokens = Tokens(self.features.width, item_width, tokens)
        self.trunk = Trunk(tokens, kept, layers, hidden, heads, masked)

    def forward(self, user: Tensor, history: Tensor, history_length: Tensor, item: Tensor, candidates: int = 1) -> Tensor:
        request = self.features(user, history, history_length)
        return self.trunk(self.tokens(request, item, candidates))


def per_candidate(rows: Tensor, candidates: int) -> Tensor:
    """[B, ...] -> [B·candidates, ...]"""
    return rows if candidates == 1 else rows.repeat_interleave(candidates, dim=0)
