"""Writes the synthetic catalogue and its held-out demo users to `catalogue/` (format: README.md).

    python3 catalogue_files.py            write the files
    python3 catalogue_files.py --check    fail if the files on disk are not what the seed gives
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from catalogue import CATALOGUE_SEED, CLICK, CONVERSION, FIRST_ITEM_ID, PRICE_BANDS, Catalogue, make_catalogue
from population import HISTORY_MAX, Population, make_population
from titles import CATEGORIES, FIRST_NAMES, HOME_TOWNS

FORMAT = 1
FOLDER = Path(__file__).parent / "catalogue"
DEMO_USERS = len(FIRST_NAMES) * len(HOME_TOWNS)
NOTICE = "Synthetic: made by a seeded generator. No real product, person or behaviour."


def make_demo_users(catalogue: Catalogue) -> Population:
    """The exported users, which no model is trained on."""
    return make_population(catalogue, "demo", DEMO_USERS, 0)


def compact(value: dict) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def float32(rows: np.ndarray) -> bytes:
    return np.ascontiguousarray(rows, dtype="<f4").tobytes()


def described(catalogue: Catalogue) -> bytes:
    rounded = [[round(float(value), 6) for value in pair] for pair in catalogue.hour_effect]
    description = {
        "format": FORMAT,
        "synthetic": True,
        "notice": NOTICE,
        "seed": catalogue.seed,
        "categories": CATEGORIES,
        "priceBands": PRICE_BANDS,
        "counts": {"items": len(catalogue.titles), "users": DEMO_USERS},
        "sequenceLengthMax": HISTORY_MAX,
        "files": {
            "items": "items.json", "itemFeatures": "items.features.f32", "users": "users.json", "userFeatures": "users.features.f32",
            "history": "users.history.i16", "truthItems": "truth.items.f32", "truthUsers": "truth.users.f32",
        },
        "itemFeatures": {
            "width": 32, "content": [0, 16], "category": [16, 26], "price": 26, "popularity": 27, "duration": 28, "rating": 29, "age": 30, "sign": 31,
        },
        "userFeatures": {
            "width": 64, "profile": [0, 16], "hourSin": 16, "hourCos": 17, "weekend": 18, "mobile": 19, "activity": 20, "spending": 21,
            "shareLiked": 22, "meanPriceLiked": 23, "intent": [24, 34], "tags": [34, 64],
        },
        "truth": {"coefficients": {"click": CLICK, "conversion": CONVERSION}, "hourEffect": rounded},
    }
    return (json.dumps(description, ensure_ascii=False, indent=2) + "\n").encode()


def catalogue_files(catalogue: Catalogue, people: Population) -> dict[str, bytes]:
    """File name -> bytes, all of `catalogue/`."""
    head = {"format": FORMAT, "synthetic": True}
    valid = people.sign != 0
    offsets = np.concatenate([[0], np.cumsum(people.length)])
    history = np.stack([people.history[valid], people.sign[valid]], axis=1)
    truth_items = [catalogue.popularity, catalogue.rating, catalogue.price, catalogue.duration, catalogue.category]
    truth_users = [people.spending, people.intent]
    return {
        "catalogue.json": described(catalogue),
        "items.json": compact({
            **head,
            "ids": list(range(FIRST_ITEM_ID, FIRST_ITEM_ID + len(catalogue.titles))),
            "titles": catalogue.titles,
            "categories": catalogue.category.tolist(),
            "priceBands": catalogue.price_band.tolist(),
            "popularity": [float(f"{share:.4g}") for share in catalogue.popularity_share],
        }),
        "items.features.f32": float32(catalogue.features),
        "users.json": compact({
            **head,
            "ids": list(range(1, DEMO_USERS + 1)),
            "names": [f"{name} of {town}" for town in HOME_TOWNS for name in FIRST_NAMES],
            "cold": people.cold.astype(int).tolist(),
            "historyOffsets": offsets.tolist(),
        }),
        "users.features.f32": float32(people.features),
        "users.history.i16": np.ascontiguousarray(history, dtype="<i2").tobytes(),
        "truth.items.f32": float32(np.concatenate([catalogue.latent, np.stack(truth_items, axis=1)], axis=1)),
        "truth.users.f32": float32(np.concatenate([people.preference, people.recent, np.stack(truth_users, axis=1)], axis=1)),
    }


def main() -> None:
    catalogue = make_catalogue(CATALOGUE_SEED)
    files = catalogue_files(catalogue, make_demo_users(catalogue))
    if "--check" in sys.argv:
        differing = [name for name, content in files.items() if (FOLDER / name).read_bytes() != content]
        if differing:
            sys.exit(f"not what seed {CATALOGUE_SEED} gives: {', '.join(differing)}; run catalogue_files.py without --check")
        return
    FOLDER.mkdir(exist_ok=True)
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)
    print(f"catalogue: {len(files)} files, {sum(map(len, files.values())):,} bytes in {FOLDER}")


if __name__ == "__main__":
    main()
