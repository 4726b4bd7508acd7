"""Tumult's side of benchmarks/engines.py, run in Tumult's own environment: JSON in, seconds out."""

import json
import os
import sys
import tempfile
import time
import warnings

warnings.simplefilter("ignore")
os.environ["PYSPARK_PYTHON"] = sys.executable  # or Spark's own workers would not find Tumult

from pyspark.sql import SparkSession  # noqa: E402
from tmlt.analytics import (  # type: ignore[import-not-found]  # noqa: E402
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

given = json.load(sys.stdin)
spark = (
    SparkSession.builder.master(given["master"])
    .config("spark.driver.memory", f"{given['memory']}m")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="hubbub-tumult-"))
    .config("spark.sql.shuffle.partitions", "16")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
frame = spark.read.parquet(given["path"]).select("patient", "region")
session = Session.from_dataframe(
    privacy_budget=PureDPBudget(float("inf")),
    source_id="visits",
    dataframe=frame,
    protected_change=AddRowsWithID(id_column="patient"),
)
asked = (
    QueryBuilder("visits")
    .enforce(MaxGroupsPerID("region", given["groups"]))
    .enforce(MaxRowsPerGroupPerID("region", given["rows"]))
    .groupby(KeySet.from_dict({"region": given["regions"]}))
    .count()
)
best = float("inf")
for number in range(given["rounds"] + 1):
    begun = time.perf_counter()
    rows = session.evaluate(asked, PureDPBudget(1)).collect()
    if len(rows) != len(given["regions"]):
        raise AssertionError("a region is missing")
    if number:  # the first warms it
        best = min(best, time.perf_counter() - begun)
print(json.dumps({"seconds": best}))
