"""Metrics of several seeds as mean and spread."""

from __future__ import annotations

import numpy as np


def spread(runs: list[dict[str, float]]) -> dict[str, dict]:
    """Per metric: mean, standard deviation over seeds, and each seed's value."""
    values = {name: [run[name] for run in runs] for name in runs[0]}
    return {
        name: {
            "mean": round(float(np.mean(found)), 5),
            "std": round(float(np.std(found, ddof=1)), 5) if len(found) > 1 else None,
            "perSeed": [round(float(value), 5) for value in found],
        }
        for name, found in values.items()
    }
