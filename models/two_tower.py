"""The retriever: a vector of the request, a vector of the item, their product."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dcn import per_candidate
from request_features import RequestFeatures


def tower(inputs: int, hidden: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, width))


class TwoTower(nn.Module):
    """Logits [B·candidates, 1] from user [B, U], history [B, T, I], history_length [B] and item [B·candidates, I].

    The item's bias stands beside the product: an index of vectors holds it as one more number against a 1.
    """

    def __init__(self, user_width: int, item_width: int, heads: int, hidden: int, width: int):
        super().__init__()
        if heads != 1:
            raise ValueError(f"two towers have one head, not {heads}")
        self.features = RequestFeatures(user_width, item_width)
        self.request = tower(self.features.width, hidden, width)
        self.candidate = tower(item_width, hidden, width)
        self.item_bias = nn.Linear(item_width, 1)

    def forward(self, user: Tensor, history: Tensor, history_length: Tensor, item: Tensor, candidates: int = 1) -> Tensor:
        request = per_candidate(self.request(self.features(user, history, history_length)), candidates)
        product = torch.sum(request * self.candidate(item), dim=1, keepdim=True)
        return product + self.item_bias(item)
