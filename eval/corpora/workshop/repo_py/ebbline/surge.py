"""Surge: what wind and air pressure add to the astronomical tide."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from .datum import DatumHistory
from .errors import DatumGapError
from .harmonics import TideModel
from .quality import Flag, Sample

#: One hectopascal of air pressure is this much water, in millimetres.
MM_PER_HPA = 9.95

#: Residuals are smoothed over so many samples before anybody sees them.
SMOOTH_SAMPLES = 9


@dataclass(frozen=True)
class Level:
    """Total level and its two parts, in millimetres above chart datum."""

    at: int
    total_mm: int
    tide_mm: int
    surge_mm: int
    flag: Flag


def water_from_pressure(raw_mm: int, air_hpa: float, reference_hpa: float = 1013.0) -> int:
    """Take the weight of the air off the reading of a pressure gauge."""
    return round(raw_mm - (air_hpa - reference_hpa) * MM_PER_HPA)


def levels(samples: list[Sample], datum: DatumHistory, model: TideModel) -> list[Level]:
    """Levels of the usable samples; those without a datum are left out.

    Samples that are suspect are kept, with their flag: whoever raises alarms
    decides for himself whether a suspect level is good enough.
    """
    out = []
    for sample in samples:
        if sample.height_mm is None or sample.flag >= Flag.BAD:
            continue
        try:
            total = datum.to_chart_datum(sample.at, sample.height_mm)
        except DatumGapError:
            continue
        tide = round(model.predict(sample.at))
        out.append(Level(sample.at, total, tide, total - tide, sample.flag))
    return out


def smooth_surge(series: list[Level]) -> list[tuple[int, int]]:
    """Running median of the surge; the last values use what there is.

    A median and not a mean, so that a single wave of a passing ship does not
    leave a hump nine minutes long.
    """
    half = SMOOTH_SAMPLES // 2
    out = []
    for i, level in enumerate(series):
        around = [x.surge_mm for x in series[max(0, i - half):i + half + 1]]
        out.append((level.at, round(median(around))))
    return out


def skew_surge(series: list[Level]) -> int | None:
    """Highest total minus highest tide over the list, whenever each occurred.

    The list should hold one high water and two hours to either side; a list
    shorter than three hours gives None, since its maximum may be an edge.
    """
    if not series or series[-1].at - series[0].at < 3 * 3600:
        return None
    return max(x.total_mm for x in series) - max(x.tide_mm for x in series)
