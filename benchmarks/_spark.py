"""Spark sessions on this machine, and the processor time of all their processes."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

__all__ = ["cpu_of", "open_session"]


def open_session(master: str, **options: str) -> Any:
    """A session of a master such as ``local[2]``; None where there is no Spark to start."""
    if shutil.which("java") is None:
        return None
    try:
        sql: Any = importlib.import_module("pyspark.sql")
    except ImportError:
        return None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python needs Arrow
    home = Path(importlib.import_module("pyspark").__file__ or "").parent
    os.environ.setdefault("SPARK_HOME", str(home))  # executors are started from there
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **options,
    }
    builder = sql.SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: Any = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def cpu_of(session: Any) -> float:
    """CPU seconds of the driver and of all that it started, executors too, also those that ended."""
    root = int(session._jvm.java.lang.ProcessHandle.current().pid())
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended meanwhile
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    tree, found = {root}, {root}
    while found:
        found = {pid for pid, parent in parents.items() if parent in found} - tree
        tree |= found
    return sum(ticks[pid] for pid in tree) / os.sysconf("SC_CLK_TCK")
