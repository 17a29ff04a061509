"""Fills Feast's online store on Redis, as its users do, and prints what Feast reads out of it again.

Items are materialised from a Parquet file, and users are pushed. One JSON line: rows by entity, {"items": {...}, "users": {...}}.
"""

import argparse
import json
import os
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig
from feast.types import Array, Bool, Float32, Float64, Int32, Int64, String
from feast.value_type import ValueType

ITEMS = 40
ITEM = Entity(name="item", join_keys=["item_id"], value_type=ValueType.INT64)
USER = Entity(name="user", join_keys=["user_id"], value_type=ValueType.STRING)


def items(path: str, now: datetime) -> FeatureView:
    random = np.random.default_rng(7)
    ids = np.arange(ITEMS, dtype=np.int64) * 3 - 20
    ages = [timedelta(days=2) if k % 4 == 3 else timedelta(minutes=5) for k in range(ITEMS)]
    frame = pd.DataFrame(
        {
            "item_id": ids,
            "event_timestamp": [now - age for age in ages],
            "price": random.normal(size=ITEMS).astype(np.float32),
            "weight": random.normal(size=ITEMS).astype(np.float64),
            "stock": random.integers(-1000, 1000, ITEMS).astype(np.int32),
            "views": random.integers(-(2**40), 2**40, ITEMS).astype(np.int64),
            "fresh": random.integers(0, 2, ITEMS).astype(bool),
            "embedding": [row.astype(np.float32) for row in random.normal(size=(ITEMS, 4))],
            "title": [f"item {k}" for k in range(ITEMS)],
        }
    )
    frame.loc[5, "price"] = None
    frame.to_parquet(path)
    return FeatureView(
        name="item_stats",
        entities=[ITEM],
        schema=[
            Field(name="item_id", dtype=Int64),
            Field(name="price", dtype=Float32),
            Field(name="weight", dtype=Float64),
            Field(name="stock", dtype=Int32),
            Field(name="views", dtype=Int64),
            Field(name="fresh", dtype=Bool),
            Field(name="embedding", dtype=Array(Float32)),
            Field(name="title", dtype=String),
        ],
        source=FileSource(name="items", path=path, timestamp_field="event_timestamp"),
        ttl=timedelta(days=30),
    )


def users(path: str, now: datetime) -> tuple[FeatureView, pd.DataFrame]:
    frame = pd.DataFrame(
        {
            "user_id": ["ann", "bob", "ä🦆"],
            "event_timestamp": [now] * 3,
            "taste": [np.array([0.1, 0.2, 0.3], np.float64), np.array([-1.5, 0, 1e-3]), np.array([7.0, 8.0, 9.0])],
            "age": np.array([31, 0, -1], np.int64),
        }
    )
    frame.to_parquet(path)
    view = FeatureView(
        name="user_stats",
        entities=[USER],
        schema=[
            Field(name="user_id", dtype=String),
            Field(name="taste", dtype=Array(Float64)),
            Field(name="age", dtype=Int64),
        ],
        source=FileSource(name="users", path=path, timestamp_field="event_timestamp"),
        ttl=timedelta(days=30),
    )
    return view, frame


def rows(store: FeatureStore, view: str, key: str, ids: list, features: list[str]) -> dict:
    read = store.get_online_features(
        features=[f"{view}:{name}" for name in features], entity_rows=[{key: one} for one in ids]
    ).to_dict()
    return {str(one): [read[name][k] for name in features] for k, one in enumerate(ids)}


def main() -> None:
    arguments = argparse.ArgumentParser()
    for name in ("redis", "project", "work"):
        arguments.add_argument(f"--{name}", required=True)
    given = arguments.parse_args()
    store = FeatureStore(
        config=RepoConfig(
            project=given.project,
            provider="local",
            registry=os.path.join(given.work, "registry.db"),
            online_store={"type": "redis", "connection_string": given.redis},
            offline_store={"type": "file"},
            entity_key_serialization_version=3,
        )
    )
    now = datetime.now(timezone.utc)
    item_view = items(os.path.join(given.work, "items.parquet"), now)
    user_view, frame = users(os.path.join(given.work, "users.parquet"), now)
    store.apply([ITEM, USER, item_view, user_view])
    store.materialize(now - timedelta(days=10), now + timedelta(minutes=1), feature_views=["item_stats"])
    store.write_to_online_store("user_stats", frame)
    ids = [k * 3 - 20 for k in range(ITEMS)] + [1_000]
    names = ["price", "weight", "stock", "views", "fresh", "embedding"]
    print(
        json.dumps(
            {
                "items": rows(store, "item_stats", "item_id", ids, names),
                "users": rows(store, "user_stats", "user_id", ["ann", "bob", "ä🦆", "nobody"], ["taste", "age"]),
            }
        )
    )


main()
