"""The ONNX graphs of a model folder, computed by ONNX Runtime: what each of the servers here serves. Standard library, NumPy and ONNX Runtime only."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

DATATYPE = {"tensor(float)": "FP32", "tensor(int64)": "INT64"}
ELEMENT = {"FP32": np.float32, "INT64": np.int64}

# A user with this number among its features takes so long: longer than the time that is left.
SLOW_REQUEST = 4096.0
SLOW_SECONDS = 1.5


@dataclass(frozen=True)
class Value:
    name: str
    datatype: str
    shape: list[int]


class Graph:
    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.inputs = [value(one) for one in self.session.get_inputs()]
        self.outputs = [value(one) for one in self.session.get_outputs()]

    def run(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if np.any(tensors["user"] == SLOW_REQUEST):
            time.sleep(SLOW_SECONDS)
        # A server's reader of JSON may have made other numbers of them.
        feeds = {one.name: np.asarray(tensors[one.name], ELEMENT[one.datatype]) for one in self.inputs}
        names = [one.name for one in self.outputs]
        return dict(zip(names, self.session.run(names, feeds), strict=True))


def value(described: onnxruntime.NodeArg) -> Value:
    shape = [size if isinstance(size, int) else -1 for size in described.shape]
    return Value(described.name, DATATYPE[described.type], shape)


def load(folder: Path) -> dict[tuple[str, str], Graph]:
    """By family and version."""
    files = sorted(folder.glob("*/*/model.onnx"))
    return {(file.parts[-3], file.parts[-2]): Graph(file) for file in files}


def arguments() -> argparse.Namespace:
    """Takes them away from the command line: KServe reads it too when it is imported."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="a folder of the server's own")
    parser.add_argument("--http-port", type=int, required=True)
    parser.add_argument("--grpc-port", type=int, required=True)
    parser.add_argument("--metrics-port", type=int, required=True)
    given = parser.parse_args()
    del sys.argv[1:]
    return given
