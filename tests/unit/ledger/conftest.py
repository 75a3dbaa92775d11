"""Places for ledgers."""

from __future__ import annotations

import signal

import pytest
from tests.support.postgres import postgres_url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def place(request, tmp_path) -> tuple[str, str]:
    """Somewhere to keep a ledger, and a data set's name that nobody else uses."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.ledger"), "survey"
    return postgres_url(), f"survey-{request.node.name}-{tmp_path.name}"


@pytest.fixture(autouse=True)
def keyboard():
    """SIGINT as at a terminal: tests that run in the background inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
