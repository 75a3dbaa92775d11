"""What all tests share: no property test is timed, because a slow machine is not a bug, and 60 examples are usual."""

import fcntl
import gc
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None, max_examples=60)
settings.load_profile("untimed")

_NAMES_A_SERVICE = re.compile(r"mark\.services|every_backend")


def _may_need_a_service(path: Path) -> bool:
    """Whether the file, or what is shared in its folder, names the mark or a table of all backends."""
    shared = path.parent / "conftest.py"
    texts = [file.read_text(encoding="utf-8") for file in (path, shared) if file.exists()]
    return any(_NAMES_A_SERVICE.search(text) for text in texts)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make test-services`` imports only what can have such a test: to import all takes half a minute."""
    only_services = config.getoption("markexpr") == "services" and collection_path.suffix == ".py"
    return True if only_services and not _may_need_a_service(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """One process collects after the other: what the first compiles is there for all that wait, who would compile it as well."""
    place = Path(__file__).parents[1] / ".cache" / "collecting"
    place.parent.mkdir(exist_ok=True)
    with place.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No test that needs a service is in a file that ``make test-services`` passes over."""
    marked = {item.path for item in items if item.get_closest_marker("services")}
    missed = sorted(str(path) for path in marked if not _may_need_a_service(path))
    if missed:
        raise pytest.UsageError(f"make test-services does not see the tests in {', '.join(missed)}")


def pytest_collection_finish() -> None:
    """What is collected stays to the end: the garbage collector, and forks, need not look through it again and again."""
    gc.collect()
    gc.freeze()
