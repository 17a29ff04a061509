"""Held-out measurement: requests of the demo users, whom no model was trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catalogue import Catalogue
from population import PROFILE_WIDTH, Impressions, Population, draw_impressions

REQUESTS = 4000
CANDIDATES = 100
CUTOFF = 10
CLICK_VALUE = 0.2


def held_out_impressions(catalogue: Catalogue, demo_users: Population, seed: int) -> Impressions:
    return draw_impressions(catalogue, demo_users, "held-out", REQUESTS, CANDIDATES, seed)


def auc(label: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve with ties at half (Mann-Whitney U)."""
    label, score = label.ravel(), score.ravel()
    _, inverse, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[inverse]
    positives = int(label.sum())
    return float((rank[label].sum() - positives * (positives + 1) / 2) / (positives * (label.size - positives)))


def log_loss(label: np.ndarray, probability: np.ndarray) -> float:
    clipped = np.clip(probability.astype(float), 1e-7, 1 - 1e-7)
    return float(-np.where(label, np.log(clipped), np.log(1 - clipped)).mean())


def top(score: np.ndarray) -> np.ndarray:
    """Columns of the best CUTOFF candidates per request, best first."""
    return np.argsort(-score, axis=1, kind="stable")[:, :CUTOFF]


def ndcg(label: np.ndarray, score: np.ndarray) -> float:
    """NDCG@10 with binary gain, mean over the requests that have a click."""
    discount = 1 / np.log2(np.arange(CUTOFF) + 2)
    gained = (np.take_along_axis(label, top(score), axis=1) * discount).sum(axis=1)
    ideal = np.cumsum(discount)[np.minimum(label.sum(axis=1), CUTOFF) - 1]
    clicked = label.any(axis=1)
    return float((gained[clicked] / ideal[clicked]).mean())


def value(shown: Impressions, score: np.ndarray) -> float:
    """True expected value of the ten best by `score`, summed over requests: click · (0.2 + conversion), from the planted truth."""
    return float(np.take_along_axis(shown.p_click * (CLICK_VALUE + shown.p_conversion), top(score), axis=1).sum())


def value_share(shown: Impressions, score: np.ndarray, requests: np.ndarray) -> float:
    """Value of a ranking against the best possible one, over the requests marked in `requests` [R]."""
    kept = replace(shown, p_click=shown.p_click[requests], p_conversion=shown.p_conversion[requests])
    return value(kept, score[requests]) / value(kept, kept.p_click * (CLICK_VALUE + kept.p_conversion))


def measure_ranking(shown: Impressions, click_score: np.ndarray, rank_score: np.ndarray) -> dict[str, float]:
    """What any ranking can be measured by: AUC and NDCG@10 of clicks, and the share of the best possible value, over all and over cold users."""
    cold = ~shown.user[:, :PROFILE_WIDTH].any(axis=1)
    return {
        "clickAuc": auc(shown.click, click_score),
        "clickNdcgAt10": ndcg(shown.click, click_score),
        "valueShareAt10": value_share(shown, rank_score, np.ones_like(cold)),
        "valueShareAt10Cold": value_share(shown, rank_score, cold),
    }


def measure_model(shown: Impressions, click: np.ndarray, conversion: np.ndarray) -> dict[str, float]:
    """Ranking metrics plus those of probabilities; conversion metrics are over clicked impressions."""
    clicked = shown.click
    return {
        **measure_ranking(shown, click, click * (CLICK_VALUE + conversion)),
        "clickLogLoss": log_loss(clicked, click),
        "clickCalibration": float(click.mean() / clicked.mean()),
        "conversionAuc": auc(shown.conversion[clicked], conversion[clicked]),
        "conversionLogLoss": log_loss(shown.conversion[clicked], conversion[clicked]),
        "conversionCalibration": float(conversion[clicked].mean() / shown.conversion[clicked].mean()),
    }


def measure_references(catalogue: Catalogue, trained_on: Impressions, shown: Impressions) -> dict[str, dict[str, float]]:
    """Rankings that need no model (popularity: clicks per item in training; click rate: smoothed) and the planted truth itself."""
    items = len(catalogue.titles)
    shows = np.bincount(trained_on.candidate.ravel(), minlength=items)
    clicks = np.bincount(trained_on.candidate.ravel(), weights=trained_on.click.ravel(), minlength=items)
    rate = (clicks + 20 * clicks.sum() / shows.sum()) / (shows + 20)
    popularity = clicks[shown.candidate]
    return {
        "popularity": measure_ranking(shown, popularity, popularity),
        "clickRate": measure_ranking(shown, rate[shown.candidate], rate[shown.candidate]),
        "truth": measure_model(shown, shown.p_click, shown.p_conversion),
    }
