"""Which functions call back into a file that called them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


def called_back(file: str, run: Callable[[], Any]) -> set[str]:
    """The functions of a file that other files of the library call during a run."""
    found: set[str] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_filename != file or frame.f_back is None:
            return
        caller = frame.f_back.f_code.co_filename
        if caller != file and "tests" not in Path(caller).parts:
            found.add(f"{frame.f_code.co_qualname} from {caller}")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found
