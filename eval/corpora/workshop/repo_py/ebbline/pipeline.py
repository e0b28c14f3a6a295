"""From the spool to the store: the process that follows the collector."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Callable

from . import frames, metrics
from .clock import ClockModel
from .errors import ClockJumpError, FrameError, ShardBusyError
from .quality import Flag, Sample, run_checks
from .retry import Backoff, call_with_retry
from .settings import Settings
from .spool import Spool
from .stations import StationRegistry
from .store import Store
from .surge import water_from_pressure

log = logging.getLogger("ebbline.pipeline")

#: Samples kept per station so that the tests see the neighbourhood of new ones.
CONTEXT_SAMPLES = 60


class Cursor:
    """Where the pipeline stands in the spool, kept in a file.

    Written by rename after the samples are in the store. After a crash some
    frames are thus read twice, which `Store.write` makes harmless, and none is
    left out.
    """

    def __init__(self, path: Path):
        self.path = path
        self.segment, self.offset = 1, 0
        if path.exists():
            saved = json.loads(path.read_text(encoding="ascii"))
            self.segment, self.offset = saved["segment"], saved["offset"]

    def save(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"segment": self.segment, "offset": self.offset}), encoding="ascii")
        os.replace(part, self.path)


class Pipeline:
    def __init__(
        self,
        settings: Settings,
        registry: StationRegistry,
        spool: Spool,
        store: Store,
        decode: Callable[[bytes], frames.Frame] = frames.decode,
        air_pressure: Callable[[str, int], float | None] = lambda station, at: None,
    ):
        self.settings = settings
        self.registry = registry
        self.spool = spool
        self.store = store
        self.decode = decode
        self.air_pressure = air_pressure
        self.cursor = Cursor(spool.directory / "cursor.json")
        self._clocks: dict[str, ClockModel] = {}
        self._context: dict[str, list[Sample]] = {}

    def clock_of(self, key: str) -> ClockModel:
        if key not in self._clocks:
            self._clocks[key] = ClockModel(key, self.settings.clock)
        return self._clocks[key]

    def handle(self, data: bytes) -> int:
        """One frame through all steps; returns the samples that changed."""
        try:
            frame = self.decode(data)
        except FrameError as error:
            log.warning("frame in the spool cannot be decoded: %s", error)
            return 0
        station = self.registry.by_wire_id(frame.station_id)
        times = self.clock_of(station.key).correct(frame.times())
        fresh = []
        for at, height in zip(times, frame.heights_mm):
            flag, reason = Flag.GOOD, ""
            if height is not None and station.needs_air_pressure:
                air = self.air_pressure(station.barometer_from or station.key, at)
                if air is None:
                    # Standard pressure is at most 40 cm wrong; better a suspect
                    # level than none during a storm.
                    air, flag, reason = 1013.0, Flag.SUSPECT, "no barometer"
                height = water_from_pressure(height, air)
            if frame.flags & frames.FLAG_LID_OPEN:
                flag, reason = Flag.SUSPECT, "lid open"
            fresh.append(Sample(at, height, flag, reason))
        context = self._context.get(station.key, [])
        checked = run_checks(context + fresh, station, self.settings.quality)
        self._context[station.key] = (context + fresh)[-CONTEXT_SAMPLES:]
        return call_with_retry(
            lambda: self.store.write(station.key, checked, backfill=frame.is_backfill),
            Backoff(first_s=0.2, cap_s=5.0, attempts=6),
        )

    def take_fix(self, key: str, fix) -> bool:
        """Hand a GPS fix to the station's clock; False if it was not believed."""
        try:
            self.clock_of(key).add_fix(fix)
            return True
        except ClockJumpError as error:
            metrics.count("fixes_refused", station=key, code=error.code)
            log.error("%s", error)
            return False

    def drain(self) -> int:
        """Read the spool to its present end; returns the number of frames.

        The cursor is saved after each segment and at the end. A busy shard
        stops the draining where it is; the next call goes on from there.
        """
        done = 0
        for number, _ in self.spool.segments():
            if number < self.cursor.segment:
                continue
            offset = self.cursor.offset if number == self.cursor.segment else 0
            for end, data in self.spool.read(number, offset):
                try:
                    self.handle(data)
                except ShardBusyError:
                    self.cursor.save()
                    return done
                self.cursor.segment, self.cursor.offset = number, end
                done += 1
            self.cursor.save()
        metrics.gauge("spool_segment", self.cursor.segment)
        return done
