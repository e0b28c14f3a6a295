"""Monthly exports for the tide office and for neighbours."""

from __future__ import annotations

import hashlib
import os
from datetime import datetime, timezone
from pathlib import Path

from . import MM_PER_M
from .quality import Flag, Sample
from .settings import ExportSettings

COLUMNS = ("time", "height_m", "flag", "reason")


def format_row(sample: Sample, settings: ExportSettings) -> str:
    """One line; a bad or missing height is `missing_value`, its flag stays.

    The value was -9999 until 3.3.0. The tide office averaged over it once.
    """
    if sample.height_mm is None or sample.flag >= Flag.BAD:
        height = settings.missing_value
    else:
        height = f"{sample.height_mm / MM_PER_M:.{settings.decimals}f}"
    stamp = datetime.fromtimestamp(sample.at, timezone.utc).strftime("%Y-%m-%dT%H:%MZ")
    return f"{stamp},{height},{sample.flag.name.lower()},{sample.reason}"


def write_month(station: str, month: str, samples: list[Sample], settings: ExportSettings) -> Path:
    """Write a month beside the old file and put it in place in one step.

    A reader sees either the whole old file or the whole new one. Its SHA-256
    lies next to it in a file of its own, written first, so that a checksum
    never vouches for a file that is not there yet for long.
    """
    folder = Path(settings.directory) / station
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{station}-{month}.csv"
    text = "\n".join([",".join(COLUMNS)] + [format_row(s, settings) for s in samples]) + "\n"
    data = text.encode("utf-8")
    digest = hashlib.sha256(data).hexdigest()
    (folder / f"{target.name}.sha256").write_text(f"{digest}  {target.name}\n", encoding="ascii")
    part = target.with_suffix(".part")
    with open(part, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, target)
    return target


def completeness(samples: list[Sample], begin: int, end: int) -> float:
    """Share of the minutes of an interval that have a good or suspect sample.

    Filled samples do not count: the yearly figure is about the gauges.
    """
    minutes = (end - begin) // 60
    usable = sum(1 for s in samples if s.height_mm is not None and s.flag in (Flag.GOOD, Flag.SUSPECT))
    return usable / minutes if minutes else 0.0
