"""Synthetic users with histories, their requests, and labels drawn from the planted truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogue import CLICK, CONVERSION, LATENT_WIDTH, SIGN_SLOT, Catalogue, stream, unit
from titles import CATEGORIES

USER_WIDTH = 64
PROFILE_WIDTH = 16
CONTEXT_SLOTS = slice(16, 20)
HISTORY_MAX = 64
TAG_COUNT = 30
COLD_SHARE = 0.15
RECENCY_SCALE = 20.0
INTENT_WEIGHT = 6.0


def logistic(logits: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-logits))


@dataclass(frozen=True)
class Population:
    """Users by row. History [U, 64]: item rows and signs, oldest first, valid up to `length`; zeros after it."""

    preference: np.ndarray
    spending: np.ndarray
    intent: np.ndarray
    cold: np.ndarray
    history: np.ndarray
    sign: np.ndarray
    length: np.ndarray
    recent: np.ndarray
    features: np.ndarray


@dataclass(frozen=True)
class Impressions:
    """R requests of C candidates: tensors as the model takes them, labels, and the probabilities behind the labels.

    user [R, 64], history_item and history_sign [R, 64], length [R], candidate [R, C]; click, conversion, p_click and
    p_conversion [R, C] (`p_conversion` is given a click; a conversion label is 1 only where there was a click).
    """

    user: np.ndarray
    history_item: np.ndarray
    history_sign: np.ndarray
    length: np.ndarray
    candidate: np.ndarray
    click: np.ndarray
    conversion: np.ndarray
    p_click: np.ndarray
    p_conversion: np.ndarray


def draw_histories(catalogue: Catalogue, preference, intent, length, rng) -> tuple[np.ndarray, np.ndarray]:
    """Item rows and signs: two in five entries come from the intent category, the rest from what is popular."""
    users = len(length)
    popular = rng.choice(len(catalogue.category), size=(users, HISTORY_MAX), p=catalogue.popularity_share)
    by_category = np.stack([np.flatnonzero(catalogue.category == index) for index in range(len(CATEGORIES))])
    on_intent = by_category[intent[:, None], rng.integers(by_category.shape[1], size=(users, HISTORY_MAX))]
    history = np.where(rng.random((users, HISTORY_MAX)) < 0.4, on_intent, popular)
    affinity = np.einsum("uk,utk->ut", preference, catalogue.latent[history]) + 0.3 * catalogue.rating[history]
    sign = np.where(rng.random((users, HISTORY_MAX)) < logistic(3.0 * affinity), 1, -1)
    valid = np.arange(HISTORY_MAX) < length[:, None]
    return np.where(valid, history, 0), np.where(valid, sign, 0)


def recent_interest(catalogue: Catalogue, history, sign, length, intent) -> np.ndarray:
    """The planted `s` of README.md, [U, 12]; zeros without a history."""
    age = length[:, None] - 1 - np.arange(HISTORY_MAX)
    on_intent = catalogue.category[history] == intent[:, None]
    weight = np.where(age >= 0, np.exp(-np.maximum(age, 0) / RECENCY_SCALE) * (1 + INTENT_WEIGHT * on_intent), 0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    return np.einsum("ut,utk->uk", sign * weight / total, catalogue.latent[history])


def user_features(catalogue: Catalogue, preference, spending, intent, cold, history, sign, length, rng) -> np.ndarray:
    """[U, 64] as README.md lays it out, with the context slots at 0."""
    users = len(length)
    layout = stream("user-layout", catalogue.seed)
    profile = preference @ layout.normal(size=(LATENT_WIDTH, PROFILE_WIDTH)) + 0.6 * rng.normal(size=(users, PROFILE_WIDTH))
    direction = unit(layout.normal(size=(TAG_COUNT, LATENT_WIDTH)))
    # Talkative users show many tags, quiet ones few: the sparsity of a request varies from user to user.
    threshold = rng.uniform(-0.3, 0.7, size=(users, 1)) + cold[:, None] * 0.4
    tags = preference @ direction.T + 0.1 * rng.normal(size=(users, TAG_COUNT)) > threshold

    valid = sign != 0
    liked = sign > 0
    stats = np.stack(
        [
            np.log1p(length) / 4,
            spending + 0.3 * rng.normal(size=users),
            liked.sum(axis=1) / np.maximum(valid.sum(axis=1), 1),
            (catalogue.price[history] * liked).sum(axis=1) / np.maximum(liked.sum(axis=1), 1),
        ],
        axis=1,
    )
    profile[cold] = 0
    stats[cold] = 0
    context = np.zeros((users, 4))
    return np.concatenate([profile, context, stats, np.eye(len(CATEGORIES))[intent], tags], axis=1).astype(np.float32)


def make_population(catalogue: Catalogue, name: str, users: int, seed: int) -> Population:
    rng = stream(f"users-{name}", catalogue.seed, seed)
    favourites = rng.integers(len(CATEGORIES), size=(users, 2))
    preference = unit(catalogue.centroid[favourites].sum(axis=1) + 0.9 * unit(rng.normal(size=(users, LATENT_WIDTH))))
    intent = np.where(rng.random(users) < 0.6, favourites[:, 0], rng.integers(len(CATEGORIES), size=users))
    spending = rng.normal(size=users)
    cold = rng.random(users) < COLD_SHARE
    length = np.clip(np.rint(rng.lognormal(2.9, 0.8, size=users)), 1, HISTORY_MAX).astype(np.int64)
    length[cold] = rng.integers(0, 3, size=int(cold.sum()))
    history, sign = draw_histories(catalogue, preference, intent, length, rng)
    return Population(
        preference=preference,
        spending=spending,
        intent=intent,
        cold=cold,
        history=history,
        sign=sign,
        length=length,
        recent=recent_interest(catalogue, history, sign, length, intent),
        features=user_features(catalogue, preference, spending, intent, cold, history, sign, length, rng),
    )


def truth(catalogue: Catalogue, people: Population, user, item, hour, mobile) -> tuple[np.ndarray, np.ndarray]:
    """P(click) and P(conversion | click), [R, C], for rows `user` [R] and `item` [R, C], `hour` and `mobile` [R]."""
    latent = catalogue.latent[item]
    preference = np.einsum("rk,rck->rc", people.preference[user], latent)
    recent = np.einsum("rk,rck->rc", people.recent[user], latent)
    same_intent = catalogue.category[item] == people.intent[user][:, None]
    angle = 2 * np.pi * hour / 24
    clock = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    click = (
        CLICK["bias"]
        + CLICK["preference"] * preference
        + CLICK["recent"] * recent
        + CLICK["popularity"] * catalogue.popularity[item]
        + CLICK["rating"] * catalogue.rating[item]
        + CLICK["sameIntent"] * same_intent
        + CLICK["mobileDuration"] * mobile[:, None] * catalogue.duration[item]
        + np.einsum("rs,rcs->rc", clock, catalogue.hour_effect[catalogue.category[item]])
    )
    conversion = (
        CONVERSION["bias"]
        + CONVERSION["preference"] * preference
        + CONVERSION["rating"] * catalogue.rating[item]
        + CONVERSION["sameIntent"] * same_intent
        + CONVERSION["priceGap"] * (catalogue.price[item] - people.spending[user][:, None]) ** 2
    )
    return logistic(click), logistic(conversion)


def draw_impressions(catalogue: Catalogue, people: Population, name: str, requests: int, candidates: int, seed: int) -> Impressions:
    """Requests of random users at random hours; half of the candidates by popularity, half uniformly."""
    rng = stream(f"impressions-{name}", catalogue.seed, seed)
    user = rng.integers(len(people.length), size=requests)
    hour = rng.uniform(0, 24, size=requests)
    weekend = rng.random(requests) < 2 / 7
    mobile = rng.random(requests) < 0.55
    popular = rng.choice(len(catalogue.category), size=(requests, candidates), p=catalogue.popularity_share)
    uniform = rng.integers(len(catalogue.category), size=(requests, candidates))
    candidate = np.where(rng.random((requests, candidates)) < 0.5, popular, uniform)
    p_click, p_conversion = truth(catalogue, people, user, candidate, hour, mobile)
    click = rng.random(p_click.shape) < p_click
    features = people.features[user].copy()
    angle = 2 * np.pi * hour / 24
    features[:, CONTEXT_SLOTS] = np.stack([np.sin(angle), np.cos(angle), weekend, mobile], axis=1)
    return Impressions(
        user=features,
        history_item=people.history[user],
        history_sign=people.sign[user],
        length=people.length[user],
        candidate=candidate,
        click=click,
        conversion=click & (rng.random(p_click.shape) < p_conversion),
        p_click=p_click,
        p_conversion=p_conversion,
    )


def history_rows(catalogue: Catalogue, item: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """The `history` tensor [.., T, 32]: item features with the sign in slot 31, zeros where the sign is 0 (padding)."""
    rows = catalogue.features[item] * (sign != 0)[..., None]
    rows[..., SIGN_SLOT] = sign
    return rows.astype(np.float32)
