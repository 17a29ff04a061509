"""config.yaml of a version in the model repository. Format: README.md."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from catalogue import ITEM_WIDTH
from export import OPSET
from population import HISTORY_MAX, USER_WIDTH

CANDIDATES_MAX = 2048
TENSOR_BYTES_MAX = 4 * (USER_WIDTH + HISTORY_MAX * ITEM_WIDTH + CANDIDATES_MAX * ITEM_WIDTH)
MEANINGS = {"click": "probability of a click", "conversion": "probability of a conversion given a click"}
TILES = "tiles: { candidates: tile_candidates, requests: tile_request, slots: candidate_slot }\n"


@dataclass(frozen=True)
class Ranking:
    """The heads of a family, in the graph's order, and how they make a score."""

    heads: tuple[str, ...]
    rank_by: str
    hints: dict[str, float]
    calibration_target: str


CLICK_AND_CONVERSION = Ranking(
    ("click", "conversion"), "click * (0.2 + conversionWeight * conversion)", {"conversionWeight": 1},
    "synthetic-catalogue-v1/click,conversion-given-click",
)
CLICK_ALONE = Ranking(("click",), "click", {}, "synthetic-catalogue-v1/click")


def write_config(folder: Path, family: str, version: int, variant: str, description: str, ranking: Ranking, uses_tiles: bool = False) -> None:
    """config.yaml, with the digest of the model file beside it."""
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    heads = "".join(
        f"  - {{ name: {head}, datatype: FP32, axes: [candidate], shape: [-1], probability: true, meaning: {MEANINGS[head]} }}\n" for head in ranking.heads
    )
    hints = "".join(f"  - {{ name: {name}, default: {value} }}\n" for name, value in ranking.hints.items())
    (folder / "config.yaml").write_text(f"""\
# Trained on a synthetic catalogue: its scores mean nothing for real traffic. Format: models/README.md.
format: 1
family: {family}
version: {version}
variant: {variant}
synthetic: true
description: {description}
model:
  file: model.onnx
  digest: sha256:{digest}
  opset: {OPSET}
inputs:
  - {{ name: user, side: request, datatype: FP32, shape: [-1, {USER_WIDTH}], axes: [request, feature] }}
  - {{ name: history, side: request, datatype: FP32, shape: [-1, -1, {ITEM_WIDTH}], axes: [request, sequence, feature], optional: true }}
  - {{ name: history_length, side: request, datatype: INT64, shape: [-1], axes: [request], lengthOf: history }}
  - {{ name: item, side: candidate, datatype: FP32, shape: [-1, {ITEM_WIDTH}], axes: [candidate, feature] }}
  - {{ name: request_index, side: index, datatype: INT64, shape: [-1], axes: [candidate] }}
{TILES if uses_tiles else ""}heads:
{heads}{"hints:" if hints else "hints: []"}
{hints}rankBy: {ranking.rank_by}
slaMs: 100
calibrationTarget: {ranking.calibration_target}
limits:
  candidatesMax: {CANDIDATES_MAX}
  sequenceLengthMax: {HISTORY_MAX}
  tensorBytesMax: {TENSOR_BYTES_MAX}
golden: golden.json
cost: cost.json
""")
