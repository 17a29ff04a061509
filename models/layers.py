"""Layers over two groups of features, the request's and the candidate's, with or without Generalized Layer Masking.

With the mask M_ij = 1 for j <= i an output of the request's group sees inputs of the request's group only, and an output of the candidate's
sees both. It is closed under composition, so however many such layers follow each other, the request's share is the same for every candidate:
`millrace model compile` finds it by the zeros and computes it once per request. Without the mask every output sees every input.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize


class Groups(NamedTuple):
    """How many features (or tokens) of each group, in this order."""

    request: int
    candidate: int

    @property
    def total(self) -> int:
        return self.request + self.candidate

    def times(self, width: int) -> Groups:
        """As numbers, where each is a token of `width`."""
        return Groups(self.request * width, self.candidate * width)


class Zeros(nn.Module):
    """Holds those weights [out, in] at 0 through which a candidate would reach the request's outputs."""

    def __init__(self, inputs: Groups, outputs: Groups):
        super().__init__()
        open_weights = torch.ones(outputs.total, inputs.total)
        open_weights[: outputs.request, inputs.request :] = 0
        self.register_buffer("open_weights", open_weights)

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.open_weights


def mask(layer: nn.Module, inputs: Groups, outputs: Groups) -> None:
    """Masks a layer's weight [out, in]; what is left of the request's rows begins larger by as much as they lost."""
    with torch.no_grad():
        layer.weight[: outputs.request] *= (inputs.total / inputs.request) ** 0.5
    parametrize.register_parametrization(layer, "weight", Zeros(inputs, outputs))


class GroupLinear(nn.Linear):
    """x·Wᵀ + b: [N, inputs.total] -> [N, outputs.total]."""

    def __init__(self, inputs: Groups, outputs: Groups, masked: bool):
        super().__init__(inputs.total, outputs.total)
        if masked:
            mask(self, inputs, outputs)


class Compression(nn.Module):
    """Linear compression block: each output token a weighted sum of input tokens. [N, inputs.total, width] -> [N, outputs.total, width]."""

    def __init__(self, inputs: Groups, outputs: Groups, masked: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs.total, inputs.total) / inputs.total**0.5)
        if masked:
            mask(self, inputs, outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.weight @ tokens


class CrossNetwork(nn.Module):
    """DCNv2 (Wang et al. 2021): x_{l+1} = x_0 ⊙ (W_l x_l + b_l) + x_l. [N, width.total] -> the same."""

    def __init__(self, width: Groups, layers: int, masked: bool):
        super().__init__()
        self.layers = nn.ModuleList(GroupLinear(width, width, masked) for _ in range(layers))

    def forward(self, first: Tensor) -> Tensor:
        x = first
        for layer in self.layers:
            x = first * layer(x) + x
        return x


class Perceptron(nn.Module):
    """ReLU layers of the widths given: [N, widths[0].total] -> [N, widths[-1].total]."""

    def __init__(self, widths: list[Groups], masked: bool):
        super().__init__()
        pairs = zip(widths[:-1], widths[1:], strict=True)
        self.layers = nn.ModuleList(GroupLinear(inputs, outputs, masked) for inputs, outputs in pairs)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def fix_masks(model: nn.Module) -> nn.Module:
    """Makes the masked weights plain ones that hold zeros, for the export."""
    for layer in model.modules():
        if parametrize.is_parametrized(layer):
            parametrize.remove_parametrizations(layer, "weight")
    return model
