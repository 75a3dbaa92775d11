"""Read rows from standard input, count them through Spark Connect, and print what each kind named as an argument gives."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from tests.support.every_kind import COLUMNS, KINDS


def main() -> None:
    sql: Any = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "4")
    session = builder.getOrCreate()
    rows = [tuple(row) for row in json.load(sys.stdin)]
    table = session.createDataFrame(rows, ", ".join(f"{name} string" for name in COLUMNS))
    print(json.dumps({kind: KINDS[kind](table) for kind in sys.argv[1:]}))
    session.stop()


if __name__ == "__main__":
    main()
