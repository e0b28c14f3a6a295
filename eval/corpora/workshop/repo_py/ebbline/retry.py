"""Waiting between attempts."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Callable, TypeVar

from .errors import EbblineError

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """Delays that double up to a cap, each spread over its upper half.

    Full spreading (from zero) was tried and let eleven loggers hit the pager
    gateway within the same second, so at least half of the delay always passes.
    """

    first_s: float = 0.5
    cap_s: float = 40.0
    attempts: int = 7

    def delays(self, rng: random.Random | None = None) -> list[float]:
        rng = rng or random.Random()
        out = []
        for attempt in range(self.attempts - 1):
            full = min(self.cap_s, self.first_s * 2 ** attempt)
            out.append(full / 2 + rng.random() * full / 2)
        return out


def call_with_retry(
    action: Callable[[], T],
    backoff: Backoff = Backoff(),
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Run an action again while it fails with errors marked transient.

    Errors that are not of the package, or not transient, come through at once;
    the last transient error comes through when the attempts are used up.
    """
    delays = backoff.delays()
    for attempt in range(backoff.attempts):
        try:
            return action()
        except EbblineError as error:
            if not error.transient or attempt == backoff.attempts - 1:
                raise
        sleep(delays[attempt])
    raise AssertionError("unreachable")
