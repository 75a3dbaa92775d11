"""A series at the desk in a real browser: opened once, closed period by period, by mouse, by keyboard and on a phone."""

from __future__ import annotations

import re

import pytest
from tests.journeys.test_desk_in_browser import Keys, chromium
from tests.support.desk_browser import Hand, desk, look, watched

import isotone as iso

pytestmark = pytest.mark.services
__all__ = ["chromium"]  # the fixture


def doses(folder, first, second):
    rows = [f"{person},first dose" for person in range(first)]
    rows += [f"{person},second dose" for person in range(second)]
    (folder / "doses.csv").write_text("\n".join(["person,stage", *rows]) + "\n")


@pytest.mark.parametrize("width", [390, 1280])
def test_from_the_first_screen_to_a_verified_chain(chromium, tmp_path, width):
    doses(tmp_path, 900, 200)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context(viewport={"width": width, "height": 900}))
        page.goto(address)
        hand = Hand(page, "series")
        hand.choose("kind", "series")
        hand.fill(name="series")
        hand.press("^Begin")
        hand.pick("data-path", "doses.csv")
        hand.tick("data-header")
        page.wait_for_selector("#look:has-text('person')")
        hand.fill(data__unit="person", privacy__unit="person")
        hand.press("^Continue")
        hand.fill(
            outline="first dose\n  second dose\n",
            series__periods="January\nFebruary\nMarch",
            data__element="stage",
        )
        page.wait_for_selector("#look svg")
        hand.press("^Continue")
        page.wait_for_selector("#answer:has-text('all counts')")
        hand.press("^Keep")
        hand.fill(total="1")
        hand.press("^Continue")
        hand.press("^Save")
        hand.fill(confirm="1")
        hand.press("^Open")
        page.wait_for_selector("text=0 of 3 planned periods are shown", timeout=120_000)
        for period in ("January", "March"):
            hand.pick("period", period)
            page.check('input[name="sure"]')
            hand.press("^Close")
            page.wait_for_selector(f"h2:has-text('{period}')", timeout=120_000)
            look(page, f"series-{period}")
            doses(tmp_path, 1500, 800)
        assert "Its secrets are destroyed" in page.inner_text("main")
        page.select_option("#since", "January")
        page.get_by_role("button", name=re.compile("^Show$")).click()
        page.wait_for_selector("th:has-text('new since January')", state="attached")
        look(page, "series-since")
        page.get_by_role("link", name="Verify").click()
        page.wait_for_selector("text=Verified: every check holds", timeout=120_000)
        look(page, "series-verified")
    assert bad == []
    assert iso.verify(tmp_path / "series-release", ledger=tmp_path / "series.ledger").holds


SPEC = """[order]
parents = { "second dose" = "first dose" }
[series]
periods = ["January", "February"]
secrets = "secrets"
[data]
path = "doses.csv"
unit = "person"
element = "stage"
[privacy]
epsilon = 1
ledger = "doses.ledger"
budget = { epsilon = 1 }
[output]
folder = "out"
"""


def test_by_keyboard_alone(chromium, tmp_path):
    """Tab reaches what opens and what closes, and Space and Enter do it."""
    doses(tmp_path, 900, 200)
    (tmp_path / "doses.toml").write_text(SPEC)
    with desk(tmp_path) as (_, address):
        page, bad = watched(chromium.new_context())
        page.goto(address)
        keys = Keys(page)
        keys.press("doses.toml", "**/accuracy")
        page.goto(page.url.replace("/accuracy", "/release"))
        keys.fill("confirm", "1")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=0 of 2 planned periods are shown", timeout=120_000)
        keys.choose("period", "Jan")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        keys.press("Close the period", "**/release/*")
        page.wait_for_selector("text=1 of 2 planned periods are shown", timeout=120_000)
    assert bad == []
    assert iso.load_release(tmp_path / "out").manifest["shown"] == [0]
