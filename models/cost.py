"""The cost model: predicted time of one request from its shape, fitted to measured single-thread runs. Format: README.md."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import onnxruntime

from catalogue import ITEM_WIDTH, stream
from population import USER_WIDTH

FIT_N = [1, 4, 16, 48, 64, 128, 192, 256, 384, 512, 768, 1024]
FIT_T = [0, 8, 16, 32, 64]
HELD_OUT_N = [2, 8, 32, 96, 160, 320, 640, 900]
HELD_OUT_T = [4, 12, 24, 48]
ROUNDS = 15
WARM_UP_RUNS = 2
RUNS = 7
MONOMIALS = {"1": lambda n, t: 1.0, "N": lambda n, t: float(n), "T": lambda n, t: float(t), "N*T": lambda n, t: float(n * t)}


def make_inputs(candidates: int, length: int, session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """One request of that shape, as the graph takes it: all of its candidates in one tile, where it has tiles."""
    rng = stream("cost", candidates, length)
    taken = {each.name for each in session.get_inputs()}
    inputs = {
        "user": rng.normal(size=(1, USER_WIDTH)).astype(np.float32),
        "history": rng.normal(size=(1, length, ITEM_WIDTH)).astype(np.float32),
        "history_length": np.array([length], dtype=np.int64),
        "item": rng.normal(size=(candidates, ITEM_WIDTH)).astype(np.float32),
        "request_index": np.zeros(candidates, dtype=np.int64),
        "tile_candidates": np.arange(candidates, dtype=np.int64)[None, :],
        "tile_request": np.zeros(1, dtype=np.int64),
        "candidate_slot": np.arange(candidates, dtype=np.int64),
    }
    return {name: values for name, values in inputs.items() if name in taken}


def measure_ms(session: onnxruntime.InferenceSession, calls: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Per call (its inputs), the CPU time in ms: the median of a round, in the fastest of the rounds. The session must have one thread.

    CPU time leaves out waiting for a core. What neighbours take of its caches and clock changes over seconds, so the rounds go over
    all calls in turn, and the fastest round of a call is the one that had the core to itself.
    """
    times = np.empty((ROUNDS, RUNS, len(calls)))
    for round_index in range(ROUNDS):
        for place, inputs in enumerate(calls):
            for run in range(-WARM_UP_RUNS, RUNS):
                start = time.thread_time_ns()
                session.run(None, inputs)
                if run >= 0:
                    times[round_index, run, place] = (time.thread_time_ns() - start) / 1e6
    return np.median(times, axis=1).min(axis=0)


def design(shapes: list[tuple[int, int]], features: list[str]) -> np.ndarray:
    return np.array([[MONOMIALS[feature](n, t) for feature in features] for n, t in shapes])


def write_cost(folder: Path, family: str, version: int, session: onnxruntime.InferenceSession, features: list[str]) -> dict:
    """Fits least squares of the relative error on one grid, reports the error on another, writes cost.json and returns it."""
    shapes = [(n, t) for n in FIT_N for t in FIT_T]
    held_out = [(n, t) for n in HELD_OUT_N for t in HELD_OUT_T]
    measured = measure_ms(session, [make_inputs(*shape, session) for shape in [*shapes, *held_out, (256, 32)]])
    times, want, typical = measured[: len(shapes)], measured[len(shapes) : -1], measured[-1]
    coefficients = np.linalg.lstsq(design(shapes, features) / times[:, None], np.ones(len(times)), rcond=None)[0]
    errors = np.abs(design(held_out, features) @ coefficients - want) / want
    cost = {
        "format": 1,
        "family": family,
        "version": version,
        "unit": "ms",
        "features": features,
        "coefficients": [float(f"{value:.4g}") for value in coefficients],
        "medianRelativeError": round(float(np.median(errors)), 4),
        "p95RelativeError": round(float(np.quantile(errors, 0.95)), 4),
        "measured": {"msN256T32": round(float(typical), 4)},
        "grid": {"B": 1, "N": FIT_N, "T": FIT_T, "heldOutN": HELD_OUT_N, "heldOutT": HELD_OUT_T, "rounds": ROUNDS, "runs": RUNS},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, onnxruntime {onnxruntime.__version__}, CPU time of 1 thread",
    }
    (folder / "cost.json").write_text(json.dumps(cost, indent=2) + "\n")
    return cost
