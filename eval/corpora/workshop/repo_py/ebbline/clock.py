"""Correction of the loggers' clocks.

A logger stamps frames by an oscillator of its own and reports, with each GPS
fix, how far that was off. Between two fixes the error is taken as linear.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from .errors import ClockJumpError, EpochRolloverError
from .settings import ClockSettings

WEEK_S = 7 * 86400


@dataclass(frozen=True)
class Fix:
    """At logger time `at` the true time was `at + offset_s`."""

    at: int
    offset_s: float


class ClockModel:
    """Offsets of one logger over time, from the fixes that were believed."""

    def __init__(self, station: str, settings: ClockSettings):
        self.station = station
        self.settings = settings
        self._fixes: list[Fix] = []

    def add_fix(self, fix: Fix) -> None:
        """Take a fix, or raise if it moves the clock further than is possible.

        The allowance grows with the time since the last fix: a logger that was
        without sky for a month may honestly be ten seconds off. A jump by whole
        multiples of 1024 weeks is told apart, because it is the receiver's week
        counter and the remedy is a firmware update and not a new battery.
        """
        if self._fixes:
            previous = self._fixes[-1]
            jump = fix.offset_s - previous.offset_s
            elapsed = max(0, fix.at - previous.at)
            allowed = self.settings.max_fix_jump_s + elapsed * self.settings.max_drift_ppm * 1e-6
            if abs(jump) > allowed:
                period = self.settings.epoch_weeks_guard * WEEK_S
                rounds = round(jump / period)
                if rounds and abs(jump - rounds * period) <= allowed:
                    raise EpochRolloverError(self.station, jump)
                raise ClockJumpError(self.station, jump)
            if fix.at <= previous.at:
                return
        self._fixes.append(fix)

    def offset_at(self, at: int) -> float:
        """Offset by which a logger time must be corrected.

        Before the first fix its offset holds; behind the last one the offset is
        carried on unchanged, never extrapolated, since drift follows the
        temperature of the hut and not the calendar.
        """
        if not self._fixes:
            return 0.0
        index = bisect_right([f.at for f in self._fixes], at)
        if index == 0:
            return self._fixes[0].offset_s
        if index == len(self._fixes):
            return self._fixes[-1].offset_s
        left, right = self._fixes[index - 1], self._fixes[index]
        share = (at - left.at) / (right.at - left.at)
        return left.offset_s + share * (right.offset_s - left.offset_s)

    def correct(self, times: list[int]) -> list[int]:
        """True times, rounded to the full minute that is nearest.

        Two samples that fall into one minute keep their order: the later one
        moves on to the next minute only if that one is free.
        """
        out: list[int] = []
        taken: set[int] = set()
        for at in times:
            true = at + self.offset_at(at)
            minute = int((true + 30) // 60) * 60
            if minute in taken and minute + 60 not in taken:
                minute += 60
            taken.add(minute)
            out.append(minute)
        return out
