"""Runs `millrace model compile` on an exported graph: the request side once per request, from the same weights."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from export import open_session
from naive_export import NAIVE_INPUTS, REQUEST_INPUTS

MILLRACE = Path(__file__).parent.parent / "bin" / "millrace.js"


def compile_graph(naive: Path, into: Path) -> dict:
    """Writes the one-graph form to `into`/model.onnx; the command's report, with requests/s of each form. Needs Node and the project's packages."""
    node = shutil.which("node")
    if node is None:
        raise FileNotFoundError("node is not on the PATH; compiling the models needs it")
    with tempfile.TemporaryDirectory() as scratch:
        command = [node, MILLRACE, "model", "compile", naive, "--request-inputs", ",".join(REQUEST_INPUTS), "--candidate-inputs", "item", "--out", scratch, "--json"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        shutil.copyfile(Path(scratch) / "model.onnx", into / "model.onnx")
    return json.loads(printed)


def naive_run(naive: Path, heads: tuple[str, ...]) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """A function that scores a call of the compiled graph with the graph as it was exported: each candidate with a copy of its request."""
    session = open_session(naive)

    def run(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        index = inputs["request_index"]
        repeated = {name: inputs[name] if name == "item" else inputs[name][index] for name in NAIVE_INPUTS}
        return session.run(list(heads), repeated)

    return run
