"""The server that the loggers dial into."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Callable

from . import frames, metrics
from .errors import ChecksumError, FrameError, SpoolFullError, UnknownStationError
from .settings import CollectorSettings
from .spool import Spool
from .stations import StationRegistry

log = logging.getLogger("ebbline.collector")
quarantine = logging.getLogger("ebbline.quarantine")

ACK = b"\x06"
NAK = b"\x15"
#: Tells the logger to keep its frames and redial in ten minutes.
HOLD = b"\x13"


class DedupWindow:
    """Remembers the last sequence numbers of each station.

    The window is per station. A shared one let a chatty station push out the
    numbers of quiet ones, which is how duplicates came into the store in May.
    """

    def __init__(self, size: int):
        self.size = size
        self._seen: dict[int, OrderedDict[int, None]] = {}

    def is_duplicate(self, station_id: int, sequence: int) -> bool:
        """Whether the number was seen; remembers it if not."""
        seen = self._seen.setdefault(station_id, OrderedDict())
        if sequence in seen:
            return True
        seen[sequence] = None
        if len(seen) > self.size:
            seen.popitem(last=False)
        return False

    def forget(self, station_id: int) -> None:
        """Drop the numbers of a station whose logger was exchanged."""
        self._seen.pop(station_id, None)


class Collector:
    """Takes frames, spools them and answers each with one byte."""

    def __init__(
        self,
        settings: CollectorSettings,
        registry: StationRegistry,
        spool: Spool,
        on_frame: Callable[[frames.Frame], None] | None = None,
    ):
        self.settings = settings
        self.registry = registry
        self.spool = spool
        self.dedup = DedupWindow(settings.dedup_window)
        self.on_frame = on_frame
        self._open = 0

    def accept(self, data: bytes) -> bytes:
        """Decide on one frame and return the byte to answer with.

        A frame that fails its checksum is answered with NAK so that it is sent
        again. One that is whole but that nobody can use (unknown station,
        unknown version) is acknowledged and quarantined: sending it again would
        not make it better, and the logger's queue would never empty.
        """
        try:
            frame = frames.decode(data)
            station = self.registry.by_wire_id(frame.station_id)
        except ChecksumError:
            metrics.count("frames_rejected", reason="checksum")
            return NAK
        except (FrameError, UnknownStationError) as error:
            metrics.count("frames_quarantined", reason=error.code)
            quarantine.warning("%s %s", error, data.hex())
            return ACK
        if self.dedup.is_duplicate(frame.station_id, frame.sequence):
            metrics.count("frames_duplicate", station=station.key)
            return ACK
        try:
            self.spool.append(data)
        except SpoolFullError:
            # Not remembered as seen: the logger sends the same number later.
            self.dedup.forget(frame.station_id)
            metrics.count("frames_held", station=station.key)
            return HOLD
        if self.on_frame is not None:
            self.on_frame(frame)
        metrics.count("frames_accepted", station=station.key)
        return ACK

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        if self._open >= self.settings.max_connections:
            # Closing without a word makes loggers redial at once; HOLD does not.
            writer.write(HOLD)
            await writer.drain()
            writer.close()
            return
        self._open += 1
        try:
            while True:
                head = await asyncio.wait_for(reader.readexactly(2), self.settings.idle_timeout_s)
                length = int.from_bytes(head, "little")
                data = await asyncio.wait_for(reader.readexactly(length), 30)
                writer.write(self.accept(data))
                await writer.drain()
        except asyncio.IncompleteReadError:
            log.debug("%s hung up", peer)
        except asyncio.TimeoutError:
            log.info("%s was silent for %s s", peer, self.settings.idle_timeout_s)
        finally:
            self._open -= 1
            writer.close()

    async def run(self) -> None:
        server = await asyncio.start_server(self._serve, self.settings.bind, self.settings.port)
        async with server:
            await server.serve_forever()
