"""API keys and the rate limit."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from .errors import AuthError

#: Keys begin so, that a scan of a repository finds one that leaked.
KEY_PREFIX = "ebk_"


def new_key() -> tuple[str, str]:
    """A new key and the digest that is stored; the key itself is shown once."""
    key = KEY_PREFIX + secrets.token_urlsafe(24)
    return key, digest(key)


def digest(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=20, person=b"ebbline-key").hexdigest()


@dataclass(frozen=True)
class Client:
    name: str
    digest: str
    stations: tuple[str, ...]
    withdrawn: bool = False

    def may_read(self, station: str) -> bool:
        """An empty list of stations means all of them."""
        return not self.stations or station in self.stations


class KeyRing:
    """Clients from a JSON file that is read again when it changed."""

    def __init__(self, path: Path):
        self.path = path
        self._stamp = 0.0
        self._clients: list[Client] = []

    def _refresh(self) -> None:
        stamp = self.path.stat().st_mtime
        if stamp != self._stamp:
            rows = json.loads(self.path.read_text(encoding="utf-8"))
            self._clients = [Client(r["name"], r["digest"], tuple(r.get("stations", ())),
                                    r.get("withdrawn", False)) for r in rows]
            self._stamp = stamp

    def authenticate(self, header: str | None) -> Client:
        """Client of an ``Authorization: Bearer`` header.

        All digests are compared even after one fits, so that the time taken
        does not tell how far down the list a key stands.
        """
        self._refresh()
        if not header or not header.startswith("Bearer " + KEY_PREFIX):
            raise AuthError("no key")
        wanted, found = digest(header[len("Bearer "):]), None
        for client in self._clients:
            if hmac.compare_digest(client.digest, wanted):
                found = client
        if found is None:
            raise AuthError("unknown key")
        if found.withdrawn:
            raise AuthError(f"key of {found.name} was withdrawn")
        return found


class TokenBucket:
    """Requests per client: a burst, refilled at a steady rate.

    Time is monotonic. With the wall clock a step of the time daemon backwards
    locked all clients out until the clock had caught up (issue 61).
    """

    def __init__(self, rate_per_s: float, burst: int, monotonic: Callable[[], float] = time.monotonic):
        self.rate_per_s = rate_per_s
        self.burst = burst
        self._monotonic = monotonic
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take tokens; returns 0, or the seconds to wait if there are too few."""
        now = self._monotonic()
        level, since = self._levels.get(client, (float(self.burst), now))
        level = min(self.burst, level + (now - since) * self.rate_per_s)
        if level < cost:
            self._levels[client] = (level, now)
            return (cost - level) / self.rate_per_s
        self._levels[client] = (level - cost, now)
        return 0.0
