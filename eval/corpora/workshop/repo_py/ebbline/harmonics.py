"""Astronomical tide from harmonic constants.

Only the prediction is done here; the least-squares fit lives in ``thole``.
Constants come as one CSV file per station, made by ``ebbline fit``.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from .errors import FitError

#: Degrees per hour of the constituents that are used most.
SPEEDS = {
    "M2": 28.9841042, "S2": 30.0, "N2": 28.4397295, "K2": 30.0821373,
    "K1": 15.0410686, "O1": 13.9430356, "P1": 14.9589314, "Q1": 13.3986609,
    "M4": 57.9682084, "MS4": 58.9841042, "MN4": 57.4238337, "M6": 86.9523127,
    "Mf": 1.0980331, "Mm": 0.5443747, "Ssa": 0.0821373, "Sa": 0.0410686,
}

#: Phases of the constants refer to this time, 2020-01-01T00:00:00Z.
PHASE_EPOCH = 1577836800

#: Constituents that a short record can tell apart, see `choose_constituents`.
SHORT_SET = ("M2", "S2", "N2", "K1", "O1", "M4", "MS4", "M6", "Mm")


@dataclass(frozen=True)
class Constant:
    name: str
    amplitude_mm: float
    phase_deg: float


@dataclass(frozen=True)
class TideModel:
    """Mean level and constants of one station, relative to chart datum."""

    station: str
    mean_mm: float
    constants: tuple[Constant, ...]
    fitted_days: int

    def predict(self, at: int) -> float:
        """Predicted height in millimetres at a Unix time."""
        hours = (at - PHASE_EPOCH) / 3600.0
        height = self.mean_mm
        for c in self.constants:
            angle = math.radians(SPEEDS[c.name] * hours - c.phase_deg)
            height += c.amplitude_mm * math.cos(angle)
        return height


def choose_constituents(days: int) -> tuple[str, ...]:
    """Constituents for a record of so many days.

    From 180 days on all of `SPEEDS` but the yearly ones, which need 365.
    From 29 days on the short set. Less is refused: with two weeks M2 and N2
    cannot be told apart, and the result looks fine until the next perigee.
    """
    if days >= 365:
        return tuple(SPEEDS)
    if days >= 180:
        return tuple(n for n in SPEEDS if n not in ("Sa", "Ssa"))
    if days >= 29:
        return SHORT_SET
    raise FitError(f"{days} days are too few, 29 are needed")


def infer_missing(constants: list[Constant]) -> list[Constant]:
    """Add P1 from K1 and K2 from S2 where a short record could not give them.

    Ratios are those of the equilibrium tide: P1 = 0.331 K1 with the same phase,
    K2 = 0.272 S2 with the same phase. A constant that was fitted is kept.
    """
    by_name = {c.name: c for c in constants}
    out = list(constants)
    for missing, source, ratio in (("P1", "K1", 0.331), ("K2", "S2", 0.272)):
        if missing not in by_name and source in by_name:
            parent = by_name[source]
            out.append(Constant(missing, parent.amplitude_mm * ratio, parent.phase_deg))
    return out


def load_model(station: str, path: Path) -> TideModel:
    """Read constants; the row named Z0 is the mean level and the days."""
    constants: list[Constant] = []
    mean, days = 0.0, 0
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["name"] == "Z0":
                mean, days = float(row["amplitude_mm"]), int(row["phase_deg"])
            elif row["name"] not in SPEEDS:
                raise FitError(f"{path.name}: no constituent {row['name']}")
            else:
                constants.append(Constant(row["name"], float(row["amplitude_mm"]), float(row["phase_deg"])))
    if days < 180:
        constants = infer_missing(constants)
    return TideModel(station, mean, tuple(constants), days)
