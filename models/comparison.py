"""Trains the architectures on a data set over several seeds, and writes `results/<data set>.json`. Run by train.sh.

    python comparison.py synthetic                      the committed catalogue
    python comparison.py movielens-per-user             the last fifth of each user's ratings held out
    python comparison.py movielens-global               the last fifth of all ratings held out

`--seeds 5` trains seeds 1 to 5. A run that was interrupted goes on where it ended: what is trained lies in the cache folder, under a digest of the code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from pathlib import Path

import torch
from torch import nn

from architectures import ARCHITECTURES, Architecture
from movielens_data import MovieLensData
from spread import spread
from synthetic_data import SyntheticData

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
DATA_SETS = {
    "synthetic": SyntheticData,
    "movielens-per-user": lambda seed: MovieLensData("per-user"),
    "movielens-global": lambda seed: MovieLensData("global"),
}
COMMON = ["catalogue", "evaluation", "movielens", "movielens_data", "population", "request_features", "synthetic_data", "training"]


def code_digest(architecture: Architecture) -> str:
    """Of all that decides a run."""
    sources = [(FOLDER / f"{module}.py").read_bytes() for module in [*COMMON, *architecture.modules]]
    return hashlib.sha256(b"".join([*sources, repr(architecture.sizes).encode()])).hexdigest()[:16]


# As it was loaded: what is changed while a run goes on is not what was run.
DIGESTS = {each.name: code_digest(each) for each in ARCHITECTURES}


def cache_folder(name: str, architecture: str) -> Path:
    """Where the runs of an architecture on a data set are kept that this very code made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "millrace" / "comparison" / name / f"{architecture}-{DIGESTS[architecture]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept_weights(name: str, architecture: str, seed: int) -> Path:
    return cache_folder(name, architecture) / f"{seed}.pt"


class Lazily:
    """A seed's data, made when the first run needs it."""

    def __init__(self, name: str, seed: int):
        self.make = lambda: DATA_SETS[name](seed)
        self.made = None

    def get(self):
        self.made = self.made or self.make()
        return self.made


def run(name: str, architecture: Architecture, seed: int, data: Lazily) -> dict:
    """{about, parameters, metrics} of one training, from the cache where it is there."""
    kept = cache_folder(name, architecture.name) / f"{seed}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    made, start = data.get(), time.process_time()
    torch.manual_seed(seed)
    model: nn.Module = made.fit(architecture, seed)
    seconds = time.process_time() - start
    found = {"about": made.about(), "parameters": sum(each.numel() for each in model.parameters()), "metrics": made.measure(model)}
    print(f"{name} seed {seed} {architecture.name}: {seconds:.0f} s of CPU, {found['metrics']}", flush=True)
    torch.save(model.state_dict(), kept_weights(name, architecture.name, seed))
    kept.write_text(json.dumps(found))
    return found


def compare(name: str, seeds: list[int], architectures: list[Architecture]) -> dict:
    """What results/<name>.json holds."""
    runs: dict[str, list[dict]] = {each.name: [] for each in architectures}
    for seed in seeds:
        data = Lazily(name, seed)
        for architecture in architectures:
            runs[architecture.name].append(run(name, architecture, seed, data))
    measured = {each: [one["metrics"] for one in found] for each, found in runs.items()}
    return {
        "format": 1,
        **runs[architectures[0].name][0]["about"],
        "seeds": seeds,
        "architectures": {
            each.name: {
                "title": each.title, "parameters": runs[each.name][0]["parameters"], "metrics": spread(measured[each.name]),
                **against_baseline(measured, each.name),
            }
            for each in architectures
        },
    }


def against_baseline(measured: dict[str, list[dict[str, float]]], name: str) -> dict:
    """LogLoss over the baseline's of the same seed, less 1: mean and spread; below 0 is better."""
    if name == "dcn" or "dcn" not in measured:
        return {}
    pairs = zip(measured[name], measured["dcn"], strict=True)
    return {"againstDcn": spread([{"logLoss": one["logLoss"] / base["logLoss"] - 1} for one, base in pairs])}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", choices=list(DATA_SETS))
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--only", choices=[each.name for each in ARCHITECTURES], help="one architecture; writes no results")
    given = options.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    chosen = [each for each in ARCHITECTURES if given.only in (None, each.name)]
    report = compare(given.data, list(range(1, given.seeds + 1)), chosen)
    if given.only is None:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{given.data}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
