"""What must be true of an exported graph, and what sharing the request side saves. A check that fails raises."""

from __future__ import annotations

import numpy as np
import onnxruntime
import torch

from catalogue import CATALOGUE_SEED, Catalogue, stream
from cost import measure_ms
from export import INPUTS, OUTPUTS, pack
from golden import make_request
from population import HISTORY_MAX, Population
from ranker import Probabilities

TOLERANCE = 1e-5
BATCHES = 20
REQUESTS_MAX = 16
CANDIDATES_MAX = 300


def relative_difference(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.max(np.abs(got - want) / np.abs(want), initial=0.0))


def refuse_above_tolerance(what: str, difference: float) -> float:
    if not difference <= TOLERANCE:
        raise ValueError(f"{what}: relative difference {difference:.2e}, allowed {TOLERANCE:.0e}")
    return difference


def check_same_as_torch(ranker: torch.nn.Module, session: onnxruntime.InferenceSession, requests: list[dict]) -> float:
    inputs, _ = pack(requests)
    with torch.inference_mode():
        want = Probabilities(ranker)(*(torch.from_numpy(inputs[name]) for name in INPUTS))
    got = session.run(OUTPUTS, inputs)
    return refuse_above_tolerance("ONNX differs from PyTorch", max(relative_difference(g, w.numpy()) for g, w in zip(got, want, strict=True)))


def check_batching(session: onnxruntime.InferenceSession, requests: list[dict], rng: np.random.Generator) -> float:
    """Requests one by one against all of them in one call, candidates shuffled and padding filled with noise."""
    inputs, order = pack(requests, rng)
    padding = np.arange(inputs["history"].shape[1])[None, :] >= inputs["history_length"][:, None]
    inputs["history"][padding] = rng.normal(size=(int(padding.sum()), inputs["history"].shape[2]))
    together = session.run(OUTPUTS, inputs)
    alone = [session.run(OUTPUTS, pack([request])[0]) for request in requests]
    worst = max(
        relative_difference(mixed, np.concatenate([outputs[head] for outputs in alone])[order]) for head, mixed in enumerate(together)
    )
    return refuse_above_tolerance("scores depend on the batch", worst)


def check_isolation(session: onnxruntime.InferenceSession, requests: list[dict], rng: np.random.Generator) -> None:
    """Changing one candidate changes its own scores and, to the bit, no other's."""
    inputs, _ = pack(requests)
    before = session.run(OUTPUTS, inputs)
    changed = int(rng.integers(len(inputs["item"])))
    inputs["item"][changed] += 1
    after = session.run(OUTPUTS, inputs)
    others = np.arange(len(inputs["item"])) != changed
    for head, was, now in zip(OUTPUTS, before, after, strict=True):
        if was[changed] == now[changed] or not np.array_equal(was[others], now[others]):
            raise ValueError(f"candidate {changed} must change its own {head} and no other candidate's")


def check_graph(ranker: torch.nn.Module, session: onnxruntime.InferenceSession, catalogue: Catalogue, people: Population) -> dict[str, float]:
    """All checks over random mixed batches; the largest differences seen."""
    rng = stream("checks", CATALOGUE_SEED)
    batching = same = 0.0
    for _ in range(BATCHES):
        sizes = rng.integers([0, 1], [HISTORY_MAX + 1, CANDIDATES_MAX], size=(rng.integers(2, REQUESTS_MAX + 1), 2))
        requests = [make_request(catalogue, people, int(length), int(candidates), rng) for length, candidates in sizes]
        batching = max(batching, check_batching(session, requests, rng))
        same = max(same, check_same_as_torch(ranker, session, requests))
        check_isolation(session, requests, rng)
    return {"batchingRelativeDifference": batching, "torchRelativeDifference": same}


def measure_sharing(session: onnxruntime.InferenceSession, catalogue: Catalogue, people: Population, candidates: int) -> dict[str, float]:
    """One request of `candidates` with the longest history: request side once (c) against once per candidate (a); CPU time."""
    shared, _ = pack([make_request(catalogue, people, HISTORY_MAX, candidates, stream("sharing", CATALOGUE_SEED))])
    repeated = {name: np.repeat(shared[name], candidates, axis=0) for name in ("user", "history", "history_length")}
    naive = {**shared, **repeated, "request_index": np.arange(candidates, dtype=np.int64)}
    shared_ms, naive_ms = measure_ms(session, [shared, naive])
    return {"candidates": candidates, "historyRows": HISTORY_MAX, "sharedMs": round(float(shared_ms), 4), "naiveMs": round(float(naive_ms), 4)}
