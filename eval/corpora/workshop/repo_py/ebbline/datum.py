"""Heights of the gauge zeros over time.

A gauge that is knocked, moved or levelled anew has another zero from that time
on. The history is kept as entries with a validity; heights in the store are
relative to the gauge, and the datum is applied on reading, so a correction of
the levelling needs no rewriting of shards.
"""

from __future__ import annotations

import csv
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from .errors import DatumGapError


@dataclass(frozen=True)
class DatumEntry:
    """From `valid_from` on the gauge zero lies `zero_mm` above chart datum.

    `zero_mm` is None while the height is unknown, between a knock and the
    levelling after it.
    """

    valid_from: int
    zero_mm: int | None
    reason: str


class DatumHistory:
    def __init__(self, station: str, entries: list[DatumEntry]):
        self.station = station
        self.entries = sorted(entries, key=lambda e: e.valid_from)

    def zero_at(self, at: int) -> int:
        """Height of the zero at a time, or `DatumGapError` if nobody knows it."""
        index = bisect_right([e.valid_from for e in self.entries], at) - 1
        if index < 0:
            raise DatumGapError(f"{self.station} has no datum before its first levelling")
        zero = self.entries[index].zero_mm
        if zero is None:
            raise DatumGapError(f"{self.station} awaits levelling: {self.entries[index].reason}")
        return zero

    def to_chart_datum(self, at: int, height_mm: int) -> int:
        return height_mm + self.zero_at(at)

    def suspend(self, at: int, reason: str) -> "DatumHistory":
        """A history in which the zero is unknown from a time on.

        Called when the step detector fires: alerts of the station fall silent,
        because a level without a datum must not wake anybody.
        """
        return DatumHistory(self.station, self.entries + [DatumEntry(at, None, reason)])

    def relevel(self, at: int, zero_mm: int, reason: str) -> "DatumHistory":
        """Close the unknown stretch backwards: the new zero holds from the
        suspension on, not from the day on which somebody came to measure it."""
        open_entries = [e for e in self.entries if e.zero_mm is None and e.valid_from <= at]
        start = open_entries[-1].valid_from if open_entries else at
        kept = [e for e in self.entries if e not in open_entries[-1:]]
        return DatumHistory(self.station, kept + [DatumEntry(start, zero_mm, reason)])


def load_history(station: str, path: Path) -> DatumHistory:
    """Read a CSV file with the columns valid_from, zero_mm and reason."""
    entries = []
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            zero = row["zero_mm"].strip()
            entries.append(DatumEntry(int(row["valid_from"]), int(zero) if zero else None, row["reason"]))
    return DatumHistory(station, entries)
