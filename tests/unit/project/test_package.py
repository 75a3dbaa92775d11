"""The package: built twice to the same bytes, and used from its wheel with nothing but what it requires."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.installation import MOST_BASE, PURPOSES, closure, requirements, size

import isotone

ROOT = Path(__file__).resolve().parents[3]
BUILDER = ("package", "benchmarks/__init__.py", "benchmarks/installation.py", "pyproject.toml", ".gitignore")
NEEDED = (
    "src",
    "examples/health-survey",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "README.md",
    "SECURITY.md",
)


def built(folder: Path, epoch: str) -> dict[str, Path]:
    """What the workflow builds, from a copy of the sources whose files have times of their own."""
    for name in (*NEEDED, *BUILDER):
        source, target = ROOT / name, folder / "copy" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(
                source, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copyfile(source, target)
    command = [sys.executable, "package/build.py", str(folder / "dist")]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(command, cwd=folder / "copy", check=True, capture_output=True, env=environment)
    return {path.name: path for path in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    one, two = (built(tmp_path_factory.mktemp("build"), "1700000000") for _ in range(2))
    assert sorted(one) == sorted(two)
    assert sorted(path.suffix for path in one.values()) == ["", ".gz", ".json", ".whl"]
    for name, path in one.items():
        assert path.read_bytes() == two[name].read_bytes(), f"{name} differs from build to build"
    return next(path for path in one.values() if path.suffix == ".whl")


def test_two_builds_are_the_same_and_hold_the_package_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    expected = {name for name in sources if "__pycache__" not in name}
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"isotone/py.typed", "isotone/desk/templates/base.html"} <= expected


def test_the_bill_of_materials_and_the_checksums_are_those_of_the_wheel(wheel):
    bill = json.loads((wheel.parent / "isotone.cdx.json").read_text())
    (own,) = bill["metadata"]["component"]["hashes"]
    licences = [entry["license"]["name"] for part in bill["components"] for entry in part.get("licenses", ())]
    assert len(licences) == len(bill["components"])  # each states one
    assert not any("copyright" in name.lower() for name in licences)
    assert own["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    needed = closure(requirements()[0])
    assert {part["name"]: part["version"] for part in bill["components"]} == {
        name: package.version for name, package in needed.items()
    }
    assert {"numba", "matplotlib", "pandas"}.isdisjoint(needed)
    lines = [line.split("  ") for line in (wheel.parent / "SHA256SUMS").read_text().splitlines()]
    assert {name: found for found, name in lines} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in wheel.parent.iterdir()
        if path.name != "SHA256SUMS"
    }


def test_nothing_old_is_published(tmp_path):
    (tmp_path / "isotone-0.0.whl").touch()
    done = subprocess.run(
        [sys.executable, ROOT / "package" / "build.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "holds files" in done.stderr


def workflow(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_the_workflow_builds_what_is_tested_here_and_is_switched_off():
    jobs = workflow("publish.yml")["jobs"]
    commands = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert "python package/build.py dist" in commands
    assert "vars.PUBLISH == 'true'" in jobs["publish"]["if"]
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == (
        "test",
        "build",
    )  # nothing untested is signed
    attested = [step for step in jobs["build"]["steps"] if step.get("uses", "").startswith("actions/attest")]
    assert [step["if"] for step in attested] == ["github.ref_type == 'tag'"] * 2
    assert jobs["publish"]["permissions"] == {"id-token": "write"}  # trusted publishing, and nothing else
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "password:" not in text


def test_the_matrix_and_the_recipe_follow_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kept = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert workflow("test.yml")["jobs"]["pythons"]["strategy"]["matrix"]["python"] == kept
    recipe = yaml.safe_load((ROOT / "package" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == isotone.__version__
    other = {"python-duckdb": "duckdb"}  # what conda calls it
    needs = {tuple(text.split(" ")) for text in recipe["requirements"]["run"]}
    needs = {(other.get(name, name), bound) for name, bound in needs}
    wanted = {(name, f">={bound}") for name, bound in (text.split(">=") for text in project["dependencies"])}
    assert needs == wanted | {("python", project["requires-python"])}
    assert recipe["package"]["name"] == project["name"]
    assert recipe["about"]["license"] == project["license"]
    assert (ROOT / recipe["about"]["license_file"]).is_file()
    commands = [f"{name} = {entry}" for name, entry in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {text.replace(" ", "") for text in recipe["requirements"]["host"][2:]} == set(built)


READER = """
import contextlib, importlib.util, io, re, sys
from pathlib import Path
readme, survey = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3])
for name in ("numba", "matplotlib", "pandas", "polars", "sklearn", "networkx", "opendp", "psycopg", "starlette", "pytest"):
    assert importlib.util.find_spec(name) is None, name
import isotone
assert "site-packages" in isotone.__file__, isotone.__file__
names = {}
for code, shown in re.findall(r"```python\\n(.*?)```\\n\\n```text\\n(.*?)```", readme, flags=re.DOTALL):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    assert [line.split()[:1] for line in printed.getvalue().splitlines()] == [line.split()[:1] for line in shown.splitlines()]
assert "<svg" in Path("out/report.html").read_text(encoding="utf-8")

import os, pyarrow.parquet
Path("desk").mkdir()
os.chdir("desk")
pyarrow.parquet.write_table(names["answers"], "rows.parquet")
Path("csv.toml").write_text(survey)
Path("parquet.toml").write_text(survey.replace("rows.csv", "rows.parquet").replace("made", "made-2"))
import pyarrow.csv
pyarrow.csv.write_csv(names["answers"], "rows.csv")
from isotone.cli import main
for words in ("plan csv.toml", "release csv.toml", "release parquet.toml", "verify made", "export made", "report made-2"):
    sys.argv = ["isotone", *words.split()]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, (words, stop.code)
try:
    names["order"].plot()
except isotone.errors.MissingExtraError as error:
    assert "matplotlib>=3.8" in str(error)
else:
    raise AssertionError("a picture without matplotlib")
print("all done")
"""
SURVEY = """
[data]
path = "rows.csv"
unit = "person"
[privacy]
epsilon = "1"
ledger = "x.ledger"
unit = "adult"
budget = { epsilon = "2" }
[order.parents]
told_twice = "told"
medication = "told"
[output]
folder = "made"
"""


@pytest.mark.skipif(os.name != "posix", reason="the environment is made of links")
def test_the_wheel_alone_runs_the_readme_and_the_command_line(wheel, tmp_path):
    """An environment with the wheel and exactly what it requires, as links to what is installed here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean"], check=True)
    (site,) = (tmp_path / "clean").glob("lib/python*/site-packages")
    for package in closure(requirements()[0]).values():
        for name in {file.parts[0] for file in package.files or () if file.parts[0] != ".."}:
            target = Path(str(package.locate_file(name)))
            if target.exists() and not (site / name).exists():
                (site / name).symlink_to(target)
    python = tmp_path / "clean" / "bin" / "python"
    install = [
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-compile",
        "--no-index",
        "--no-deps",
        str(wheel),
    ]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    assert (python.parent / "isotone").exists()
    (tmp_path / "survey.toml").write_text(SURVEY)
    done = subprocess.run(
        [python, "-I", "-c", READER, ROOT / "README.md", tmp_path / "survey.toml"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("all done\n"), done.stdout + done.stderr


def test_isotone_alone_is_small():
    base, extras = requirements()
    assert size(closure(base).values()) <= MOST_BASE
    assert set(extras) == set(PURPOSES)
