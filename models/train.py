"""Trains both variants on every seed, exports the first seed's, and writes metrics.json and the model cards. Run by train.sh."""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

import training
from catalogue import CATALOGUE_SEED, Catalogue, make_catalogue
from catalogue_files import make_demo_users
from checks import check_graph, measure_sharing
from cost import write_cost
from evaluation import CANDIDATES, REQUESTS, held_out_impressions, measure_model, measure_references
from config_file import CLICK_AND_CONVERSION, write_config
from export import FAMILY, OUTPUTS, REPOSITORY, export_onnx, open_session
from golden import write_golden
from model_card import write_card
from population import Population
from ranker import Ranker
from spread import spread

METRICS = Path(__file__).parent / "metrics.json"


@dataclass(frozen=True)
class Version:
    """One version of the family: its place in the repository, its widths, how long it is trained."""

    number: int
    variant: str
    description: str
    widths: dict
    epochs: int


VERSIONS = [
    Version(
        1, "baseline", "small GLM-DCNv2 ranker with a pooled history",
        {"request_width": 32, "candidate_width": 16, "queries": 1, "pooled_width": 16, "layers": 2, "hidden": (24, 12)}, epochs=3,
    ),
    Version(
        2, "enhanced", "wider GLM-DCNv2 ranker with a pooled history",
        {"request_width": 96, "candidate_width": 48, "queries": 2, "pooled_width": 16, "layers": 2, "hidden": (64, 32)}, epochs=4,
    ),
]


def make_ranker(version: Version, seed: int) -> Ranker:
    torch.manual_seed(seed)
    return Ranker(**version.widths)


def write_version(version: Version, ranker: Ranker, catalogue: Catalogue, people: Population) -> dict:
    """Everything in the version's folder but the card; returns what was checked and measured on the way."""
    folder = REPOSITORY / FAMILY / str(version.number)
    folder.mkdir(parents=True, exist_ok=True)
    export_onnx(ranker, folder / "model.onnx")
    session = open_session(folder / "model.onnx")
    checked = check_graph(ranker, session, catalogue, people)
    write_config(folder, FAMILY, version.number, version.variant, f"{version.description}, trained on a synthetic catalogue", CLICK_AND_CONVERSION)
    write_golden(folder, FAMILY, version.number, CLICK_AND_CONVERSION.heads, lambda inputs: session.run(OUTPUTS, inputs), catalogue, people)
    return {
        "parameters": sum(parameter.numel() for parameter in ranker.parameters()),
        "modelBytes": (folder / "model.onnx").stat().st_size,
        "checks": {name: float(f"{value:.2g}") for name, value in checked.items()},
        "cost": write_cost(folder, FAMILY, version.number, session, ["1", "N", "T"]),
        "sharing": measure_sharing(session, catalogue, people, 256),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=5, help="train seeds 1 to this number (default 5); seed 1 is exported")
    seeds = list(range(1, options.parse_args().seeds + 1))
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    # The exporter reports that optional packages it does not need are missing.
    for name in ("torch.onnx", "torch.utils.flop_counter"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="torch.onnx")

    catalogue = make_catalogue(CATALOGUE_SEED)
    people = make_demo_users(catalogue)
    references: dict[str, list[dict[str, float]]] = {}
    measured: dict[int, list[dict[str, float]]] = {version.number: [] for version in VERSIONS}
    exported: dict[int, dict] = {}
    for seed in seeds:
        shown = training.training_impressions(catalogue, seed)
        held_out = held_out_impressions(catalogue, people, seed)
        for name, metrics in measure_references(catalogue, shown, held_out).items():
            references.setdefault(name, []).append(metrics)
        for version in VERSIONS:
            start = time.perf_counter()
            ranker = training.train(make_ranker(version, seed), catalogue, shown, version.epochs, seed)
            metrics = measure_model(held_out, *training.predict(ranker, catalogue, held_out))
            measured[version.number].append(metrics)
            print(f"seed {seed} {version.variant}: {time.perf_counter() - start:.0f} s, {metrics}", flush=True)
            if seed == seeds[0]:
                exported[version.number] = write_version(version, ranker, catalogue, people)

    report = {
        "format": 1,
        "synthetic": True,
        "catalogueSeed": CATALOGUE_SEED,
        "seeds": seeds,
        "exportedSeed": seeds[0],
        "training": {"users": training.TRAINING_USERS, "requests": training.REQUESTS, "candidates": training.CANDIDATES},
        "heldOut": {"users": len(people.length), "requests": REQUESTS, "candidates": CANDIDATES},
        "references": {name: spread(runs) for name, runs in references.items()},
        "versions": {
            str(version.number): {
                "variant": version.variant, "widths": version.widths, "epochs": version.epochs,
                **exported[version.number], "metrics": spread(measured[version.number]),
            }
            for version in VERSIONS
        },
    }
    METRICS.write_text(json.dumps(report, indent=1) + "\n")
    for version in VERSIONS:
        write_card(REPOSITORY / FAMILY / str(version.number) / "README.md", str(version.number), report)


if __name__ == "__main__":
    main()
