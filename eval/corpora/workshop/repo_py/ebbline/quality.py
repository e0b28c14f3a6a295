"""Automatic quality control: flags, never changes.

Every sample keeps its height; the tests only set a flag. The worst flag wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import median

from .settings import QualitySettings
from .stations import Station

#: Makes the median absolute deviation comparable with a standard deviation.
MAD_SCALE = 1.4826

#: The deviation is never taken as smaller than this: on calm nights the radar
#: repeats one value, the deviation is zero, and every ripple would be a spike.
MAD_FLOOR_MM = 4.0


class Flag(IntEnum):
    """Quality of a sample, ordered from best to worst."""

    GOOD = 0
    FILLED = 1
    SUSPECT = 2
    BAD = 3
    MISSING = 4


@dataclass(frozen=True)
class Sample:
    at: int
    height_mm: int | None
    flag: Flag = Flag.GOOD
    reason: str = ""


def worse(sample: Sample, flag: Flag, reason: str) -> Sample:
    """The sample with a flag, unless it has a worse one already."""
    return replace(sample, flag=flag, reason=reason) if flag > sample.flag else sample


def check_range(samples: list[Sample], station: Station, settings: QualitySettings) -> list[Sample]:
    """Outside of the station's range is suspect, beyond the margin it is bad.

    The range is what was ever observed; a record surge must not be thrown away
    only because it is one, hence two steps.
    """
    low, high = station.range_mm
    margin = settings.range_margin_mm
    out = []
    for sample in samples:
        height = sample.height_mm
        if height is None:
            out.append(worse(sample, Flag.MISSING, "no echo"))
        elif not low - margin <= height <= high + margin:
            out.append(worse(sample, Flag.BAD, "range"))
        elif not low <= height <= high:
            out.append(worse(sample, Flag.SUSPECT, "range"))
        else:
            out.append(sample)
    return out


def check_spikes(samples: list[Sample], station: Station, settings: QualitySettings) -> list[Sample]:
    """Hampel test: a sample far from the median of its neighbourhood.

    A run of three or more deviating samples on the same side is not a spike but
    an event (a seiche, the wake of a ferry) and stays good. Before 3.1 runs
    were flagged too, which hid the wave of 14 March at Lannoch Pier.
    """
    k = station.hampel_k if station.hampel_k is not None else settings.hampel_k
    half = settings.hampel_window // 2
    sides = [0] * len(samples)
    for i, sample in enumerate(samples):
        if sample.height_mm is None:
            continue
        around = [s.height_mm for s in samples[max(0, i - half):i + half + 1] if s.height_mm is not None]
        if len(around) < settings.hampel_window // 2 + 1:
            continue
        middle = median(around)
        spread = max(MAD_FLOOR_MM, MAD_SCALE * median(abs(h - middle) for h in around))
        deviation = sample.height_mm - middle
        if abs(deviation) > k * spread:
            sides[i] = 1 if deviation > 0 else -1
    out = list(samples)
    i = 0
    while i < len(sides):
        if sides[i] == 0:
            i += 1
            continue
        end = i
        while end < len(sides) and sides[end] == sides[i]:
            end += 1
        if end - i < 3:
            for j in range(i, end):
                out[j] = worse(out[j], Flag.SUSPECT, "spike")
        i = end
    return out


def check_flatline(samples: list[Sample], settings: QualitySettings) -> list[Sample]:
    """Identical heights for longer than `flatline_minutes` are bad.

    All samples of the run are flagged, not only those behind the limit: the
    float was stuck from the first of them on.
    """
    out = list(samples)
    start = 0
    for i in range(1, len(samples) + 1):
        if i < len(samples) and samples[i].height_mm == samples[start].height_mm:
            continue
        if samples[start].height_mm is not None:
            minutes = (samples[i - 1].at - samples[start].at) // 60
            if minutes >= settings.flatline_minutes:
                for j in range(start, i):
                    out[j] = worse(out[j], Flag.BAD, "flatline")
        start = i
    return out


def check_rate(samples: list[Sample], settings: QualitySettings) -> list[Sample]:
    """Steps steeper than the limit make both neighbours suspect."""
    out = list(samples)
    for i in range(1, len(samples)):
        a, b = samples[i - 1], samples[i]
        if a.height_mm is None or b.height_mm is None or b.at <= a.at:
            continue
        minutes = (b.at - a.at) / 60
        if abs(b.height_mm - a.height_mm) / minutes > settings.rate_limit_mm_per_min:
            out[i - 1] = worse(out[i - 1], Flag.SUSPECT, "rate")
            out[i] = worse(out[i], Flag.SUSPECT, "rate")
    return out


def run_checks(samples: list[Sample], station: Station, settings: QualitySettings) -> list[Sample]:
    """All tests in order. The rate test is left out for float gauges, whose
    wells already smooth the level and whose steps are always real."""
    samples = check_range(samples, station, settings)
    samples = check_spikes(samples, station, settings)
    samples = check_flatline(samples, settings)
    if station.sensor != "float":
        samples = check_rate(samples, settings)
    return samples
