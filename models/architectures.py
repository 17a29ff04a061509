"""The architectures that are compared, each below 100 000 parameters, and all given the same inputs.

The wide GLM-DCNv2 is the attention ranker without its attention: it tells what of the gain is the trunk's.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from dca import Dca
from dcn import Dcn
from layers import Groups
from two_tower import TwoTower

SMALL = {"tokens": Groups(8, 6), "kept": Groups(3, 5), "layers": 2, "hidden": [Groups(8, 24), Groups(4, 12)]}
WIDE = {"tokens": Groups(12, 8), "kept": Groups(4, 10), "layers": 2, "hidden": [Groups(8, 56), Groups(4, 28)]}
ATTENTION = {"attention_layers": 2, "attention_width": 32, "attention_heads": 2, "asked": Groups(8, 4)}


@dataclass(frozen=True)
class Architecture:
    """`kind` with its sizes, and the modules of this folder that it is made of."""

    name: str
    title: str
    kind: type[nn.Module]
    sizes: dict
    modules: tuple[str, ...]

    def make(self, user_width: int, item_width: int, heads: int) -> nn.Module:
        """Untrained."""
        return self.kind(user_width, item_width, heads=heads, **self.sizes)


ARCHITECTURES = [
    Architecture("dcn", "DCNv2", Dcn, {**SMALL, "masked": False}, ("dcn", "layers")),
    Architecture("glm", "GLM-DCNv2", Dcn, {**SMALL, "masked": True}, ("dcn", "layers")),
    Architecture("glm-wide", "GLM-DCNv2, wide", Dcn, {**WIDE, "masked": True}, ("dcn", "layers")),
    Architecture("dca", "Deep Cross Attention", Dca, {**WIDE, **ATTENTION}, ("dca", "dcn", "layers")),
    Architecture("two-tower", "two towers", TwoTower, {"hidden": 96, "width": 32}, ("two_tower", "dcn")),
]
