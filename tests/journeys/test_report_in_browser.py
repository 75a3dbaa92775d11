"""The report in a real browser: it fits a phone and a desk, and loads nothing from anywhere."""

import json
import re
import shutil
import subprocess

import pandas as pd
import pytest
from tests.support import flat

import isotone as iso

pytestmark = pytest.mark.services

P = iso.Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
]


def releases(folder):
    ledger = iso.Ledger(folder / "x.ledger", epsilon=9)
    table = pd.DataFrame(
        {"person": range(60), "hyp": 1, "twice": 1, "meds": 0, "age": range(60), "risk": 0.5}
    )
    yield flat.counts(table, P, epsilon=1, ledger=ledger, unit="person", title="An unbreakablylongtitle " * 3)
    yield flat.table(
        table, category="age", categories=[f"a category number {i}" for i in range(60)], upper=9, epsilon=1,
        ledger=ledger, unit="person",
    )  # fmt: skip
    yield flat.curve(
        table, x="age", y="risk", bounds=(0, 60), y_range=(0, 1), epsilon=1, ledger=ledger, unit="person"
    )


def measure(page, width, folder):
    """Width of the page's content in a frame of the given width, and what it asked the network for."""
    wrapper = folder / "wrapper.html"
    quoted = json.dumps(page).replace("</", "<\\/")
    wrapper.write_text(
        f"<html><body><iframe id=f style='width:{width}px;height:900px;border:0'></iframe><pre id=r></pre><script>"
        f"const f=document.getElementById('f');f.onload=()=>{{const d=f.contentDocument;"
        "document.getElementById('r').textContent='found '+d.documentElement.scrollWidth+' '+"
        "f.contentWindow.performance.getEntriesByType('resource').length+' '+[...d.querySelectorAll('svg')].filter(s=>s.getBoundingClientRect().width>0).length;};"
        f"f.srcdoc={quoted};</script></body></html>",
        encoding="utf-8",
    )
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no Chromium could be installed on this machine")
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{wrapper}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r"found (\d+) (\d+) (\d+)", done.stdout)
    assert found, done.stdout[-500:]
    return tuple(map(int, found.groups()))


def test_reports_fit_a_phone_and_a_desk(tmp_path):
    from isotone.release.report import report_html

    for i, release in enumerate(releases(tmp_path)):
        page = report_html(release)
        for width in (390, 1280):
            folder = tmp_path / f"{i}-{width}"
            folder.mkdir()
            content, requests, pictures = measure(page, width, folder)
            assert content <= width, f"{release.kind} at {width}"
            assert requests == 0
            assert pictures == 1  # a diagram on a desk, nested dots on a phone
