"""Writes the compared architectures into the model repository: seed 1's weights on the synthetic catalogue, compiled. Run by train.sh.

Per version: `exported/<architecture>.onnx` (a row per candidate, what the compiler takes), and the folder in `repository/` with the compiled graph,
config.yaml, golden.json (scores of the exported graph in Python's onnxruntime, which the compiled one must give), cost.json and the model card.
"""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from architectures import ARCHITECTURES, Architecture
from catalogue import CATALOGUE_SEED, ITEM_WIDTH, Catalogue, make_catalogue
from catalogue_files import make_demo_users
from comparison import RESULTS, kept_weights
from comparison_card import write_card
from compiling import compile_graph, naive_run
from config_file import CLICK_ALONE, CLICK_AND_CONVERSION, Ranking, write_config
from cost import write_cost
from export import REPOSITORY, open_session
from golden import CASES_WITH_CANDIDATES, write_golden
from naive_export import export_naive
from population import USER_WIDTH, Population

SEED = 1
EXPORTED = Path(__file__).parent / "exported"


@dataclass(frozen=True)
class CommittedVersion:
    """A place in the repository for an architecture."""

    architecture: str
    family: str
    number: int
    variant: str
    description: str
    ranking: Ranking
    cost_features: tuple[str, ...]


VERSIONS = [
    CommittedVersion("dcn", "dcn", 1, "baseline", "small DCNv2 without a mask", CLICK_AND_CONVERSION, ("1", "N", "T")),
    CommittedVersion("glm", "dcn", 2, "baseline", "the same DCNv2 under Generalized Layer Masking", CLICK_AND_CONVERSION, ("1", "N", "T")),
    CommittedVersion("dca", "dcn", 3, "enhanced", "Deep Cross Attention over the history", CLICK_AND_CONVERSION, ("1", "N", "T", "N*T")),
    CommittedVersion("two-tower", "two-tower", 1, "baseline", "two towers, for retrieval", CLICK_ALONE, ("1", "N", "T")),
]


def trained(architecture: Architecture, heads: int) -> nn.Module:
    weights = kept_weights("synthetic", architecture.name, SEED)
    if not weights.exists():
        raise FileNotFoundError(f"{architecture.name} of seed {SEED} is not trained: run comparison.py synthetic first")
    model = architecture.make(USER_WIDTH, ITEM_WIDTH, heads)
    model.load_state_dict(torch.load(weights))
    return model.eval()


def write_version(version: CommittedVersion, catalogue: Catalogue, people: Population) -> dict:
    """All files of a version but its card; what was found on the way."""
    architecture = next(each for each in ARCHITECTURES if each.name == version.architecture)
    heads = version.ranking.heads
    folder = REPOSITORY / version.family / str(version.number)
    folder.mkdir(parents=True, exist_ok=True)
    naive = EXPORTED / f"{architecture.name}.onnx"
    export_naive(trained(architecture, len(heads)), heads, naive, f"{architecture.name} (trained on synthetic data)")
    report = compile_graph(naive, folder)
    description = f"{version.description}, trained on a synthetic catalogue"
    write_config(folder, version.family, version.number, version.variant, description, version.ranking, report["usesTiles"])
    write_golden(folder, version.family, version.number, heads, naive_run(naive, heads), catalogue, people, CASES_WITH_CANDIDATES)
    return {
        "family": version.family, "version": version.number, "variant": version.variant,
        "modelBytes": (folder / "model.onnx").stat().st_size, "nodes": report["nodes"], "artefactTensors": len(report["artefact"]),
        "verified": report["verified"], "throughput": [rounded(row) for row in report["throughput"]],
        "cost": write_cost(folder, version.family, version.number, open_session(folder / "model.onnx"), list(version.cost_features)),
    }


def rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: value if name == "candidates" else float(f"{value:.4g}") for name, value in row.items()}


def main() -> None:
    torch.set_num_threads(1)
    # The exporter reports that optional packages it does not need are missing.
    for name in ("torch.onnx", "torch.utils.flop_counter"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="torch.onnx")
    EXPORTED.mkdir(exist_ok=True)
    catalogue = make_catalogue(CATALOGUE_SEED)
    people = make_demo_users(catalogue)
    written = {version.architecture: write_version(version, catalogue, people) for version in VERSIONS}
    (RESULTS / "throughput.json").write_text(json.dumps({"format": 1, "synthetic": True, "seed": SEED, "historyRows": 32, "architectures": written}, indent=1) + "\n")
    for version in VERSIONS:
        write_card(version.architecture)


if __name__ == "__main__":
    main()
