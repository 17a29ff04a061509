"""A trained architecture as ONNX in the form that `millrace model compile` takes: a row per candidate of every input."""

from __future__ import annotations

import copy
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from catalogue import ITEM_WIDTH
from export import OPSET
from layers import fix_masks
from population import USER_WIDTH

NAIVE_INPUTS = ["user", "history", "history_length", "item"]
REQUEST_INPUTS = NAIVE_INPUTS[:3]


class HeadProbabilities(nn.Module):
    """Every head as an output [N] of its own. The logistic function is written out, see `ranker.Probabilities`."""

    def __init__(self, model: nn.Module, heads: int):
        super().__init__()
        self.model = model
        self.heads = heads

    def forward(self, user: Tensor, history: Tensor, history_length: Tensor, item: Tensor) -> tuple[Tensor, ...]:
        probabilities = 1 / (1 + torch.exp(-self.model(user, history, history_length, item)))
        return tuple(probabilities[:, head] for head in range(self.heads))


def export_naive(model: nn.Module, heads: tuple[str, ...], path: Path, name: str) -> None:
    """Writes the graph with N rows and T steps, its masks as zeros among the weights, and nothing in it about the machine that made it."""
    plain = HeadProbabilities(fix_masks(copy.deepcopy(model)), len(heads)).eval()
    rows = 5
    example = (torch.zeros(rows, USER_WIDTH), torch.zeros(rows, 7, ITEM_WIDTH), torch.tensor([7, 0, 2, 3, 1]), torch.zeros(rows, ITEM_WIDTH))
    free = torch.export.Dim.DYNAMIC
    program = torch.onnx.export(
        plain, example, dynamo=True, opset_version=OPSET, input_names=NAIVE_INPUTS, output_names=list(heads), verbose=False,
        dynamic_shapes=({0: free}, {0: free, 1: free}, {0: free}, {0: free}),
    )
    proto = program.model_proto
    for part in [proto, proto.graph, *proto.graph.node, *proto.graph.input, *proto.graph.output, *proto.graph.initializer]:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    proto.graph.ClearField("value_info")
    proto.ClearField("functions")
    proto.graph.name = name
    onnx.checker.check_model(proto)
    path.write_bytes(proto.SerializeToString(deterministic=True))
