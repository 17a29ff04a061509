"""From a trained ranker to its ONNX graph, and how requests are packed into a call of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from catalogue import ITEM_WIDTH
from population import USER_WIDTH
from ranker import Probabilities

OPSET = 20
FAMILY = "ranker"
REPOSITORY = Path(__file__).parent / "repository"
INPUTS = ["user", "history", "history_length", "item", "request_index"]
OUTPUTS = ["click", "conversion"]
DIMENSIONS = {"user": "B", "history": "BT", "history_length": "B", "item": "N", "request_index": "N", "click": "N", "conversion": "N"}


def export_onnx(ranker: torch.nn.Module, path: Path) -> None:
    """Writes the ONNX graph with dynamic B, T and N, and nothing in it about the machine that made it."""
    example = (
        torch.zeros(3, USER_WIDTH),
        torch.zeros(3, 5, ITEM_WIDTH),
        torch.tensor([5, 0, 2]),
        torch.zeros(7, ITEM_WIDTH),
        torch.tensor([0, 1, 2, 2, 1, 0, 0]),
    )
    free = torch.export.Dim.DYNAMIC
    program = torch.onnx.export(
        Probabilities(ranker).eval(), example, dynamo=True, opset_version=OPSET, input_names=INPUTS, output_names=OUTPUTS, verbose=False,
        dynamic_shapes=({0: free}, {0: free, 1: free}, {0: free}, {0: free}, {0: free}),
    )
    model = program.model_proto
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        value.ClearField("metadata_props")
    for value in [*model.graph.input, *model.graph.output]:
        for axis, name in enumerate(DIMENSIONS[value.name]):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    model.graph.ClearField("value_info")
    model.graph.ClearField("metadata_props")
    model.ClearField("metadata_props")
    model.ClearField("functions")
    model.graph.name = f"{FAMILY} (trained on synthetic data)"
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """A single-threaded CPU session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def pack(requests: list[dict[str, np.ndarray]], rng: np.random.Generator | None = None) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """One call's inputs from requests of {user [64], history [T, 32], item [N, 32]}, and each packed row's place in request order.

    With `rng` the candidates are shuffled, as the contract allows.
    """
    lengths = np.array([len(request["history"]) for request in requests], dtype=np.int64)
    history = np.zeros((len(requests), int(lengths.max()), ITEM_WIDTH), dtype=np.float32)
    for row, request in enumerate(requests):
        history[row, : lengths[row]] = request["history"]
    index = np.repeat(np.arange(len(requests), dtype=np.int64), [len(request["item"]) for request in requests])
    order = np.arange(len(index)) if rng is None else rng.permutation(len(index))
    item = np.concatenate([request["item"] for request in requests])
    packed = {
        "user": np.stack([request["user"] for request in requests]),
        "history": history,
        "history_length": lengths,
        "item": item[order],
        "request_index": index[order],
    }
    return packed, order
