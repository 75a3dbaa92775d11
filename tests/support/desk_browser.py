"""A real browser in front of a real desk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

AXE = Path(__file__).parents[2] / ".cache" / "services" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("ISOTONE_PICTURES")
"""A folder for pictures of every screen, to be looked at. That of the README is desk.png."""

SLOW = """
import sys, time
from isotone.release.pipeline import Job
from isotone.release import pipeline
real, rehearse = Job.read, pipeline.rehearse
def read(self, frame):
    if rehearsed:
        time.sleep(3600)
    return real(self, frame)
rehearsed = []
def then(*args):
    sizes = rehearse(*args)
    rehearsed.append(True)
    return sizes
Job.read, pipeline.rehearse = read, then
from isotone.desk.server import serve
serve(0, sys.argv[1], browser=False)
"""
"""A desk whose releases never finish to read."""


@contextmanager
def desk(folder, *options, slow=False):
    """A desk in a process of its own; its process and its start address."""
    usual = ["-m", "isotone", "serve", "--port", "0", "--no-browser", "--root", str(folder), *options]
    command = ["-c", SLOW, str(folder)] if slow else usual
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield process, found[0]
    finally:
        process.kill()
        process.wait()


def watched(context):
    """A page, and what it asks of another machine or complains about."""
    page, bad = context.new_page(), []
    page.set_default_timeout(180_000)  # a busy machine is no bug
    page.on(
        "request", lambda asked: None if asked.url.startswith("http://127.0.0.1:") else bad.append(asked.url)
    )
    page.on("console", lambda said: bad.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: bad.append(str(error)))
    return page, bad


def look(page, name):
    """No column off-screen, and nothing that axe objects to."""
    page.wait_for_load_state()  # a page may be there before its style sheet
    width = page.viewport_size["width"]
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    if AXE.exists():
        page.evaluate(AXE.read_text())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        found = page.evaluate("tags => axe.run(document, {runOnly: tags})", tags)
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == [], name


class Hand:
    """Fills and presses, and counts both as inputs. Every screen is looked at before it is left."""

    def __init__(self, page, name):
        self.page, self.name, self.inputs = page, name, 0

    def fill(self, **fields):
        """Fields by their ids, with two underlines for the hyphen behind the section."""
        for field, value in fields.items():
            self.inputs += 1
            self.page.fill(f"#{field.replace('__', '-')}", value)

    def pick(self, field, value):
        self.inputs += 1
        self.page.select_option(f"#{field}", value)

    def tick(self, field):
        self.inputs += 1
        self.page.check(f"#{field}")

    def choose(self, name, value):
        self.inputs += 1
        self.page.check(f'input[name="{name}"][value="{value}"]')

    def press(self, text):
        self.inputs += 1
        look(self.page, f"{self.name}-{self.page.url.partition('?')[0].rsplit('/', 1)[1] or 'start'}")
        self.page.get_by_role("button", name=re.compile(text)).click()
        self.page.wait_for_load_state()

    def release(self):
        """The screens after the accuracy, up to the button."""
        self.fill(total="3")
        self.press("^Continue")
        self.press("^Save")
        amount = re.search(r"Type (\S+) to confirm", self.page.inner_text("main"))
        assert amount
        self.fill(confirm=amount[1])
        self.press("^Release$")

    def finish(self):
        self.page.wait_for_selector("text=Verified: every check holds", timeout=120_000)
        look(self.page, f"{self.name}-released")
