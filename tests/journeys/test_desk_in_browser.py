"""The desk in a real browser: from a questionnaire to a verified report, by mouse, by keyboard and on a phone."""

from __future__ import annotations

import re
import shutil
import signal

import pytest
from tests.support.desk_browser import PICTURES, Hand, desk, look, watched
from tests.support.desk_survey import write_survey

import isotone as iso

pytestmark = pytest.mark.services

MOST = 25
"""Inputs of a whole journey."""


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


def write_measurements(folder):
    rows = [
        f"{i},{'ABC'[i % 3]},{i % 90},{(i % 90) / 90:.3f},{i % 9},{'fm'[i % 2]},1,{i % 2}" for i in range(900)
    ]
    (folder / "answers.csv").write_text(
        "\n".join(["person,region,age,risk,dose,sex,ill,treated", *rows]) + "\n"
    )


def whose(hand):
    hand.pick("data-path", "answers.csv")
    hand.tick("data-header")
    hand.page.wait_for_selector("#look:has-text('person')")
    hand.fill(data__unit="person", privacy__unit="person")
    hand.press("^Continue")


def counts(hand, page):
    """From an XLSForm: nothing is typed but names and numbers."""
    hand.fill(name=hand.name)
    hand.pick("form", "form.xlsx")
    hand.press("^Begin")
    whose(hand)
    page.wait_for_selector("#look svg")
    hand.press("^Continue")
    hand.fill(error="20")
    page.wait_for_selector("#answer:has-text('± 20')")
    assert page.input_value("#amount") != "1"
    page.click("summary")
    hand.fill(
        guesses="smoke 400\ndaily 200\nfirst 200\nfirst_1 100\nfirst_2 100\nquit 200\naids 200\naids_talk 150\naids_patch 60"
    )
    page.wait_for_selector("#dots")
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/desk.png")
    hand.press("^Keep")


def breakdown(hand, page):
    begun(hand, "order")
    hand.fill(outline="ill\n  treated\n", order__by="region: A, B, C\nsex: f, m")
    page.wait_for_selector("#look svg")
    hand.press("^Continue")
    hand.fill(error="30")
    page.wait_for_selector("#answer:not(:has-text('ε = 1,'))")  # widths are nearly whole: 30 or less
    hand.press("^Keep")


def begun(hand, kind):
    hand.choose("kind", kind)
    hand.fill(name=hand.name)
    hand.press("^Begin")
    whose(hand)


def hierarchy(hand, page):
    """Codes of a tree, one row for each."""
    begun(hand, "order")
    hand.fill(outline="A\nB\nC\n")
    page.wait_for_selector("#look svg")
    page.click("summary:has-text('More choices')")
    hand.fill(data__element="region")
    hand.press("^Continue")
    hand.press("^Keep")


def table(hand, page):
    begun(hand, "table")
    hand.fill(table__category="region", table__categories="A\nB\nC\nD", table__upper="500")
    hand.press("^Continue")
    hand.fill(error="4")
    page.wait_for_selector("#answer:has-text('± 4')")
    hand.press("^Keep")


def curve(hand, page):
    begun(hand, "curve")
    hand.fill(curve__x="age", curve__y="risk", curve__bounds="0, 90", curve__y_range="0, 1")
    hand.press("^Continue")
    hand.fill(records="1000")
    page.wait_for_selector("#answer caption:has-text('1000 records')")
    hand.press("^Keep")


def surface(hand, page):
    begun(hand, "curve")
    hand.fill(curve__x="age, dose", curve__y="risk", curve__bounds="0, 90\n0, 9", curve__y_range="0, 1")
    hand.press("^Continue")
    hand.press("^Keep")


def distribution(hand, page):
    begun(hand, "distribution")
    hand.fill(distribution__column="age", distribution__bounds="0, 100")
    hand.press("^Continue")
    hand.fill(records="1000")
    page.wait_for_selector("#answer:has-text('about 1,000 records')")
    hand.press("^Keep")


def survival(hand, page):
    begun(hand, "survival")
    hand.fill(
        survival__time="age",
        survival__event="treated",
        survival__horizon="60",
        survival__yes="1",
        survival__no="0",
    )
    hand.press("^Continue")
    hand.press("^Keep")


@pytest.mark.parametrize(
    ("journey", "width"),
    [
        (counts, 390),
        (counts, 1280),
        (breakdown, 390),
        (hierarchy, 1280),
        (table, 1280),
        (table, 390),
        (curve, 390),
        (surface, 1280),
        (distribution, 390),
        (survival, 1280),
    ],
)
def test_from_the_first_screen_to_a_verified_report(chromium, tmp_path, journey, width):
    (write_survey if journey is counts else write_measurements)(tmp_path)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context(viewport={"width": width, "height": 900}))
        page.goto(address)
        hand = Hand(page, journey.__name__)
        journey(hand, page)
        hand.release()
        hand.finish()
        page.get_by_role("link", name="Read the report").click()
        page.wait_for_load_state()
        assert "differential privacy" in page.inner_text("main")
        for _ in range(6):  # no page is the answer to a form: Back shows every screen again
            page.go_back()
            assert page.locator("h1").count() == 1, page.url
        for _ in range(5):
            page.go_forward()
        page.get_by_role("link", name="The numbers").click()
        page.wait_for_load_state()
        look(page, f"{hand.name}-numbers")
        page.get_by_role("link", name="Releases made").click()
        page.wait_for_load_state()
        look(page, f"{hand.name}-releases")
    assert hand.inputs <= MOST
    assert bad == []
    assert iso.verify(tmp_path / f"{hand.name}-release", ledger=tmp_path / f"{hand.name}.ledger").holds


def test_a_server_that_is_killed_in_the_middle_and_a_second_tab(chromium, tmp_path):
    """The ledger keeps the charge; the next desk goes on under it, and a second tab of it is no second charge."""
    write_survey(tmp_path)
    with desk(tmp_path, slow=True) as (process, address):
        page, _ = watched(chromium.new_context())
        page.goto(address)
        hand = Hand(page, "counts")
        counts(hand, page)
        hand.release()
        page.wait_for_selector("text=charged: yes")
        page.wait_for_selector("text=drawn: not yet")
        process.send_signal(signal.SIGKILL)
        process.wait()
    ledger = iso.Ledger(tmp_path / "counts.ledger")
    assert [(charge.number, charge.state) for charge in ledger.charges()] == [(1, "reading")]
    with desk(tmp_path) as (_, address):
        context = chromium.new_context()
        page, _ = watched(context)
        page.goto(address)
        page.get_by_role("button", name="counts.toml").click()
        page.wait_for_load_state()
        page.get_by_role("link", name=re.compile("^Release$")).click()
        page.wait_for_load_state()
        second, _ = watched(context)
        second.goto(page.url)
        for tab in (page, second):
            amount = re.search(r"Type (\S+) to confirm", tab.inner_text("main"))
            assert amount
            tab.fill("#confirm", amount[1])
            tab.get_by_role("button", name=re.compile("^Release$")).click()
        for tab in (page, second):
            tab.wait_for_selector("text=Verified: every check holds", timeout=120_000)
    assert [(charge.number, charge.state) for charge in ledger.charges()] == [(1, "sealed")]


def test_by_keyboard_alone(chromium, tmp_path):
    """Tab reaches every field in its sequence, a text area lets go of the focus, and Enter sends a form."""
    write_survey(tmp_path)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context())
        page.goto(address)
        keys = Keys(page)
        keys.fill("name", "keys")
        keys.choose("form", "form.xlsx")
        keys.press("Begin", "**/data")
        keys.choose("data-path", "answers.csv")
        keys.reach("data-header")
        page.keyboard.press("Space")
        keys.fill("data-unit", "person")
        keys.enter("**/what")
        keys.reach("outline")
        keys.press("Continue", "**/accuracy")
        keys.fill("amount", "0.5")
        page.wait_for_selector("#answer:has-text('ε = 0.5')")
        keys.press("Keep this ε and continue", "**/budget")
        keys.fill("total", "2")
        keys.press("Continue", "**/review")
        keys.press("Save keys.toml and continue", "**/release")
        keys.fill("confirm", "0.5")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Verified: every check holds", timeout=120_000)
        keys.press("Read the report", "**/report?*")
    assert bad == []


class Keys:
    """Somebody without a mouse."""

    def __init__(self, page):
        self.page = page

    def reach(self, id, most=60):
        self._reach(f"document.activeElement.id === {id!r}", id, most)

    def _reach(self, there, name, most=60):
        for _ in range(most):
            if self.page.evaluate(there):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{name} is not reached")

    def fill(self, id, value):
        self.reach(id)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(value)

    def choose(self, id, words):
        self.reach(id)
        self.page.keyboard.type(words)

    def enter(self, address):
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(address)

    def press(self, words, address):
        self._reach(f"document.activeElement.innerText === {words!r}", words)
        self.enter(address)


def test_at_200_percent_and_with_reduced_motion(chromium, tmp_path):
    """At twice the size a desk is as narrow as a phone: nothing is cut off, and nothing moves."""
    write_survey(tmp_path)
    with desk(tmp_path, "--read-only") as (_, address):
        context = chromium.new_context(
            viewport={"width": 640, "height": 400}, device_scale_factor=2, reduced_motion="reduce"
        )
        page, bad = watched(context)
        page.goto(address)
        look(page, "zoomed-start")
        moving = "[...document.querySelectorAll('*')].filter(x => getComputedStyle(x).transitionDuration !== '0s').length"
        assert page.evaluate(moving) == 0
    assert bad == []
