"""Reading of memory cards: frames that never came over the air."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

from . import frames
from .clock import ClockModel
from .errors import FrameError
from .quality import run_checks, Sample
from .settings import QualitySettings
from .stations import Station
from .store import Store

log = logging.getLogger("ebbline.backfill")

#: Frames are written in pages of this size and never cross one.
CARD_PAGE = 512


@dataclass
class CardReport:
    frames: int = 0
    damaged_pages: list[int] = field(default_factory=list)
    foreign: int = 0
    written: int = 0


def scan_card(path: Path, report: CardReport) -> Iterator[frames.Frame]:
    """Frames of a card image in the order of the pages.

    A page is 511 bytes at most and a length byte pair in front; erased pages
    are all 0xFF and end the scan only after 64 of them in a row, because a
    logger that lost power skips ahead to the next erase block.
    """
    erased = 0
    with open(path, "rb") as stream:
        number = 0
        while page := stream.read(CARD_PAGE):
            if page.count(0xFF) == len(page):
                erased += 1
                if erased >= 64:
                    return
            else:
                erased = 0
                length = int.from_bytes(page[:2], "little")
                try:
                    yield frames.decode(page[2:2 + length])
                    report.frames += 1
                except FrameError as error:
                    log.warning("page %d: %s", number, error)
                    report.damaged_pages.append(number)
            number += 1


def load_card(
    path: Path,
    station: Station,
    clock: ClockModel,
    store: Store,
    quality: QualitySettings,
    dry_run: bool = False,
) -> CardReport:
    """Bring a card into the store; frames of another station are only counted.

    Cards wander between huts, so a foreign frame is normal. It is not written
    to its own station either: whose clock it was stamped by is unknown.
    The clock model should have the fix that was taken when the card was pulled,
    or the end of the record is off by the whole drift.
    """
    report = CardReport()
    samples: list[Sample] = []
    for frame in scan_card(path, report):
        if frame.station_id != station.id:
            report.foreign += 1
            continue
        for at, height in zip(clock.correct(frame.times()), frame.heights_mm):
            samples.append(Sample(at, height))
    samples.sort(key=lambda s: s.at)
    checked = run_checks(samples, station, quality)
    if not dry_run:
        report.written = store.write(station.key, checked, backfill=True)
    return report
