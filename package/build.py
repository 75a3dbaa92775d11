"""Build what is published: a wheel, a source archive, a bill of materials and checksums, the same bytes each time.

``python package/build.py dist`` needs hatchling and the packages that isotone requires, as ``make`` installs them. The bill
(CycloneDX 1.5) lists those with their versions and licences, isotone alone and no extra.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.installation import closure, requirements  # noqa: E402

BILL, SUMS = "isotone.cdx.json", "SHA256SUMS"
EPOCH = "1577836800"
"""The time that files in archives have unless SOURCE_DATE_EPOCH says another: the first day of 2020."""


def build(out: Path) -> list[Path]:
    """Write everything into ``out``, which must be new or empty."""
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} holds files: name a new folder, so that nothing old is published.")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out.resolve())]
    subprocess.run(command, cwd=ROOT, check=True, env=environment, stdout=subprocess.DEVNULL)
    archives = sorted(out.iterdir())
    wheel = next(path for path in archives if path.suffix == ".whl")
    _write(out / BILL, json.dumps(bill(wheel), indent=1) + "\n")
    files = [*archives, out / BILL]
    _write(out / SUMS, "".join(f"{_sha256(path)}  {path.name}\n" for path in files))
    return [*files, out / SUMS]


def bill(wheel: Path) -> dict[str, Any]:
    """The bill of materials of a wheel: itself, and every package that it requires, however deep."""
    name, version = wheel.name.split("-")[:2]
    own = f"pkg:pypi/{name}@{version}"
    needed = closure(requirements()[0])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": name,
                "version": version,
                "purl": own,
                "bom-ref": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": _sha256(wheel)}],
            }
        },
        "components": [_component(key, needed[key]) for key in sorted(needed)],
        "dependencies": [
            {"ref": own, "dependsOn": [f"pkg:pypi/{key}@{needed[key].version}" for key in sorted(needed)]}
        ],
    }


def _component(name: str, package: Distribution) -> dict[str, Any]:
    licence = _licence(package)
    where = f"pkg:pypi/{name}@{package.version}"
    found: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": package.version,
        "purl": where,
        "bom-ref": where,
    }
    return {**found, "licenses": [{"license": {"name": licence}}]} if licence else found


def _licence(package: Distribution) -> str:
    """The expression that a package states, else what its classifiers say, else a first line that is no copyright notice."""
    said = package.metadata
    marks = [mark for mark in said.get_all("Classifier", []) if mark.startswith("License :: ")]
    named = " AND ".join(sorted(mark.rpartition(" :: ")[2] for mark in marks))
    first = (said["License"] or "").strip().partition("\n")[0][:100]
    return said["License-Expression"] or named or ("" if first.startswith("Copyright") else first)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    for made in build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")):
        print(made)
