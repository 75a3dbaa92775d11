"""The secrets of one run of the desk."""

from __future__ import annotations

import hmac
import secrets
import threading

__all__ = ["Keys"]


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


class Keys:
    """A token that opens the desk once, the session that it opens, and what every form of the session carries."""

    def __init__(self) -> None:
        self.token: str = secrets.token_urlsafe(32)
        self.session: str = secrets.token_urlsafe(32)
        self.form: str = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._used = False

    def redeem(self, token: str) -> bool:
        """Whether this is the token of the start address, and nobody used it before."""
        with self._lock:
            if self._used or not _equal(token, self.token):
                return False
            self._used = True
            return True

    def is_session(self, cookie: str) -> bool:
        """Whether a cookie belongs to the session."""
        return _equal(cookie, self.session)

    def is_form(self, value: str) -> bool:
        """Whether a form was made by this session."""
        return _equal(value, self.form)
