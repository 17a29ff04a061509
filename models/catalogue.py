"""The synthetic catalogue: 2 000 readable items with planted latent factors. Numpy only, deterministic by seed.

Run as a script it writes `catalogue/` (format: README.md). Nothing in it is real; every exported file says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from titles import CATEGORIES, TITLE_PARTS

CATALOGUE_SEED = 7
ITEM_COUNT = 2000
ITEM_WIDTH = 32
CONTENT_WIDTH = 16
LATENT_WIDTH = 12
FIRST_ITEM_ID = 1001
ZIPF_EXPONENT = 1.05
SIGN_SLOT = 31
PRICE_BANDS = ["low", "mid", "high"]

# Planted coefficients of the click and conversion logits; README.md gives the formula.
CLICK = {
    "bias": -3.4, "preference": 2.6, "recent": 3.0, "popularity": 0.25, "rating": 0.35,
    "sameIntent": 0.6, "mobileDuration": -0.4,
}
CONVERSION = {"bias": -0.6, "preference": 1.2, "rating": 0.6, "sameIntent": 0.8, "priceGap": -0.45}


def stream(name: str, *seeds: int) -> np.random.Generator:
    """A named random stream, so that a new draw in one place disturbs no other."""
    return np.random.default_rng([*seeds, *name.encode()])


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


@dataclass(frozen=True)
class Catalogue:
    """Items by row. Numbers named as in README.md: `latent` [I, 12] has unit rows, the scalars are standardised."""

    seed: int
    titles: list[str]
    category: np.ndarray
    price_band: np.ndarray
    popularity_share: np.ndarray
    latent: np.ndarray
    centroid: np.ndarray
    popularity: np.ndarray
    rating: np.ndarray
    price: np.ndarray
    duration: np.ndarray
    hour_effect: np.ndarray
    features: np.ndarray


def make_titles(category: np.ndarray, rng: np.random.Generator) -> list[str]:
    """One distinct title per item, drawn without replacement from its category's combinations."""
    titles = [""] * len(category)
    for index, name in enumerate(CATEGORIES):
        beginnings, endings = TITLE_PARTS[name]
        rows = np.flatnonzero(category == index)
        for row, pick in zip(rows, rng.permutation(len(beginnings) * len(endings))[: len(rows)], strict=True):
            titles[row] = f"{beginnings[pick // len(endings)]} {endings[pick % len(endings)]}"
    return titles


def zipf_shares(rating: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Exposure shares, Zipf over ranks; better-rated items tend to rank higher."""
    order = np.argsort(-(0.5 * rating + rng.normal(size=len(rating))))
    shares = np.empty(len(rating))
    shares[order] = np.arange(1, len(rating) + 1) ** -ZIPF_EXPONENT
    return shares / shares.sum()


def make_catalogue(seed: int = CATALOGUE_SEED) -> Catalogue:
    rng = stream("items", seed)
    category = np.repeat(np.arange(len(CATEGORIES)), ITEM_COUNT // len(CATEGORIES))
    rng.shuffle(category)
    centroid = unit(rng.normal(size=(len(CATEGORIES), LATENT_WIDTH)))
    latent = unit(centroid[category] + 0.9 * unit(rng.normal(size=(ITEM_COUNT, LATENT_WIDTH))))
    rating = rng.normal(size=ITEM_COUNT)
    price = standardised(0.7 * rng.normal(size=len(CATEGORIES))[category] + rng.normal(size=ITEM_COUNT))
    duration = rng.normal(size=ITEM_COUNT)
    age = rng.normal(size=ITEM_COUNT)
    shares = zipf_shares(rating, stream("popularity", seed))
    popularity = standardised(np.log(shares))

    mixing = stream("content", seed).normal(size=(LATENT_WIDTH, CONTENT_WIDTH))
    content = latent @ mixing + 0.25 * rng.normal(size=(ITEM_COUNT, CONTENT_WIDTH))
    one_hot = np.eye(len(CATEGORIES))[category]
    observed_rating = rating + 0.3 * rng.normal(size=ITEM_COUNT)
    scalars = np.stack([price, popularity, duration, observed_rating, age, np.zeros(ITEM_COUNT)], axis=1)
    return Catalogue(
        seed=seed,
        titles=make_titles(category, stream("titles", seed)),
        category=category,
        price_band=np.digitize(price, [-0.5, 0.7]),
        popularity_share=shares,
        latent=latent,
        centroid=centroid,
        popularity=popularity,
        rating=rating,
        price=price,
        duration=duration,
        hour_effect=0.4 * stream("hours", seed).normal(size=(len(CATEGORIES), 2)),
        features=np.concatenate([content, one_hot, scalars], axis=1).astype(np.float32),
    )
