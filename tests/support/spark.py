"""A real local Spark session for the tests that need one."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from typing import Any

import pytest

SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": SMALL_JAVA,
}
"""Tests count a few rows by many queries, so Spark need not compile each. The worker of Spark Connect has Spark's own settings."""


@functools.cache
def spark_session() -> Any:
    """Start Spark once for this test process; skip, saying so, where it cannot be had."""
    if shutil.which("java") is None:
        pytest.skip("no Java could be installed on this machine, so there is no Spark")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: run make test-services")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers that run Python need this one's Arrow
    builder = sql.SparkSession.builder.master("local[2]").appName("isotone")
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
    } | _SMALL
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
