"""The desk in a real browser: from a questionnaire to a verified report, by mouse, by keyboard and on a phone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import isotone as iso

pytestmark = pytest.mark.services

AXE = Path(__file__).parents[2] / ".cache" / "services" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("ISOTONE_PICTURES")
"""A folder for pictures of every screen, to be looked at. That of the README is desk.png."""


@contextmanager
def desk(folder, *options):
    command = [
        sys.executable,
        "-m",
        "isotone",
        "serve",
        "--port",
        "0",
        "--no-browser",
        "--root",
        str(folder),
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield process, found[0]
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def chromium():
    sync = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no Chromium could be installed on this machine")
    with sync.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        yield opened
        opened.close()


def write_survey(folder):
    from tests.support.desk_survey import DICTIONARY

    (folder / "dictionary.csv").write_text(DICTIONARY)
    rows = [f"{i},{(1, 2, 9)[i % 3]},{int(i % 3 == 0)},{int(i % 3 == 0)}" for i in range(600)]
    (folder / "answers.csv").write_text("\n".join(["person,smoke,daily,late", *rows]) + "\n")


def look(page, name):
    """No column off-screen, nothing from elsewhere, nothing that axe objects to, no complaint in the console."""
    width = page.viewport_size["width"]
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    if AXE.exists():
        page.evaluate(AXE.read_text())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        found = page.evaluate("tags => axe.run(document, {runOnly: tags})", tags)
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == [], name


def journey(page, address, name, form=""):
    """Every screen up to a release; returns how many inputs it took."""
    inputs = 0

    def fill(field, value):
        nonlocal inputs
        inputs += 1
        page.fill(f"#{field}", value)

    def press(text):
        nonlocal inputs
        inputs += 1
        look(page, f"{name}-{page.url.rsplit('/', 1)[1] or 'start'}")
        page.get_by_role("button", name=re.compile(text)).click()
        page.wait_for_load_state()

    page.goto(address)
    fill("name", name)
    if form:
        fill("form", form)
    press("^Begin")
    if not form:
        fill("outline", "smoke\n  daily\n    late\n")
        page.wait_for_selector("#look svg")
    press("^Continue")
    fill("path", "answers.csv")
    fill("unit", "person")
    fill("words", "person")
    press("^Continue")
    fill("error", "20")
    press("^Find")
    assert "± 20" in page.inner_text("#answer")
    page.click("summary")
    fill("guesses", "smoke 200\ndaily 120\nlate 60")
    press("^Show")
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/desk.png")
    press("^Keep")
    fill("total", "3")
    press("^Continue")
    press("^Save")
    amount = re.search(r"Type (\S+) to confirm", page.inner_text("main"))
    assert amount
    fill("confirm", amount[1])
    press("^Release$")
    page.wait_for_selector("text=Verified: every check holds", timeout=120_000)
    look(page, f"{name}-released")
    return inputs


def watched(context):
    """A page that fails the test if it asks another machine or complains."""
    page, bad = context.new_page(), []
    page.set_default_timeout(180_000)  # a busy machine is no bug
    page.on(
        "request", lambda asked: None if asked.url.startswith("http://127.0.0.1:") else bad.append(asked.url)
    )
    page.on("console", lambda said: bad.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: bad.append(str(error)))
    return page, bad


@pytest.mark.parametrize("width", [390, 1100])
def test_from_a_questionnaire_to_a_verified_report(chromium, tmp_path, width):
    write_survey(tmp_path)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context(viewport={"width": width, "height": 900}))
        inputs = journey(page, address, "smoking", "dictionary.csv")
        page.get_by_role("link", name="Read the report").click()
        page.wait_for_load_state()
        assert "differential privacy" in page.inner_text("main")
        page.go_back()
        page.get_by_role("link", name="Releases made").click()
        page.wait_for_load_state()
        look(page, "releases")
    assert inputs <= 25
    assert bad == []
    assert iso.verify(tmp_path / "smoking-release", ledger=tmp_path / "smoking.ledger").holds


def test_a_second_tab_and_a_killed_server_charge_once(chromium, tmp_path):
    write_survey(tmp_path)
    with desk(tmp_path) as (process, address):
        context = chromium.new_context()
        page, _ = watched(context)
        journey(page, address, "smoking")
        second, _ = watched(context)
        second.goto(page.url)
        assert "Verified" in second.inner_text("main")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with desk(tmp_path) as (_, address):
        page, _ = watched(chromium.new_context())
        page.goto(address)
        page.get_by_role("button", name="smoking.toml").click()
        page.wait_for_load_state()
        page.get_by_role("link", name=re.compile("^Release$")).click()
        page.wait_for_load_state()
        page.get_by_role("button", name="Show the release").click()
        page.wait_for_selector("text=Nothing was charged now", timeout=120_000)
    assert [charge.state for charge in iso.Ledger(tmp_path / "smoking.ledger").charges()] == ["sealed"]


def test_by_keyboard_alone(chromium, tmp_path):
    """Tab reaches every field in its sequence, the text area lets go of the focus, and Enter sends a form."""
    write_survey(tmp_path)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context())
        page.goto(address)
        reach(page, "name")
        page.keyboard.type("keys")
        page.keyboard.press("Enter")
        page.wait_for_url("**/what")
        reach(page, "outline")
        page.keyboard.type("smoke\n  daily\n")
        page.wait_for_selector("#look svg")
        reach(page, "yes")
        page.keyboard.press("Enter")
        page.wait_for_url("**/people")
        reach(page, "path")
        assert bad == []


def reach(page, name, most=40):
    for _ in range(most):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} is not reached")
