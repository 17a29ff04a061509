"""Golden cases: inputs and the outputs that any runtime must give for them. Format: README.md."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from catalogue import CATALOGUE_SEED, Catalogue, stream
from export import INPUTS, pack
from population import Population, history_rows

DATATYPES = {np.dtype("float32"): "FP32", np.dtype("int64"): "INT64"}
# name -> per request of the call (history rows, candidates).
CASES = {
    "one-candidate": [(5, 1)],
    "no-history": [(0, 4)],
    "no-candidates": [(8, 0)],
    "long-history": [(64, 16)],
    "many-candidates": [(20, 128)],
    "two-requests": [(12, 6), (40, 3)],
    "empty-request-among-others": [(6, 4), (3, 0), (9, 2)],
    "one-history-among-none": [(0, 3), (30, 3), (0, 3)],
    "mixed-shuffled": [(2, 17), (64, 40), (0, 1), (25, 8), (11, 30)],
    "all-without-history": [(0, 2), (0, 5)],
}
# Of graphs with a product over stacked rows, which onnxruntime refuses to compute for no rows; the worker calls no graph for no candidates.
CASES_WITH_CANDIDATES = {name: sizes for name, sizes in CASES.items() if any(candidates > 0 for _, candidates in sizes)}


def make_request(catalogue: Catalogue, people: Population, length: int, candidates: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A request of a random user whose history has at least `length` entries: {user [64], history [length, 32], item [candidates, 32]}."""
    user = int(rng.choice(np.flatnonzero(people.length >= length)))
    features = people.features[user].copy()
    angle = 2 * np.pi * rng.uniform(0, 24) / 24
    features[16:20] = [np.sin(angle), np.cos(angle), rng.random() < 2 / 7, rng.random() < 0.55]
    newest = slice(people.length[user] - length, people.length[user])
    item = rng.choice(len(catalogue.titles), size=candidates, p=catalogue.popularity_share)
    return {
        "user": features,
        "history": history_rows(catalogue, people.history[user, newest], people.sign[user, newest]),
        "item": catalogue.features[item],
    }


def tensor(values: np.ndarray) -> dict:
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return {"datatype": DATATYPES[values.dtype], "shape": list(values.shape), "base64": base64.b64encode(little_endian.tobytes()).decode()}


def score(heads: dict[str, np.ndarray]) -> np.ndarray:
    """What `rankBy` makes of them with the hints' defaults, [N] FP32."""
    click = heads["click"].astype(float)
    return (click * (0.2 + heads["conversion"].astype(float)) if "conversion" in heads else click).astype(np.float32)


def write_golden(
    folder: Path, family: str, version: int, heads: tuple[str, ...], run: Callable[[dict[str, np.ndarray]], list[np.ndarray]],
    catalogue: Catalogue, people: Population, cases_of: dict[str, list[tuple[int, int]]] = CASES,
) -> None:
    """golden.json: what `run` makes of a call's inputs, [N] per head. Padding rows carry noise, not zeros: a runtime or a graph that reads them fails the check."""
    rng = stream("golden", CATALOGUE_SEED)
    cases = []
    for name, sizes in cases_of.items():
        requests = [make_request(catalogue, people, length, candidates, rng) for length, candidates in sizes]
        inputs, _ = pack(requests, rng if name.endswith("shuffled") else None)
        padding = np.arange(inputs["history"].shape[1])[None, :] >= inputs["history_length"][:, None]
        inputs["history"][padding] = rng.normal(size=(int(padding.sum()), inputs["history"].shape[2]))
        outputs = dict(zip(heads, run(inputs), strict=True))
        cases.append({
            "name": name,
            "inputs": {key: tensor(inputs[key]) for key in INPUTS},
            "outputs": {key: tensor(outputs[key]) for key in heads},
            "scores": tensor(score(outputs)),
        })
    head = {"format": 1, "family": family, "version": version, "synthetic": True, "tolerance": {"relative": 1e-4, "absolute": 1e-6}}
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (folder / "golden.json").write_text(f"{json.dumps(head)[:-1]}, \"cases\": [\n{lines}\n]}}\n")
