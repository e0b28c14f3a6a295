"""The spool: frames on disk before anything is decoded.

A segment is a file of records, each a length (4 bytes), a CRC-32 (4 bytes) and
the frame as it came. Segments are numbered and never written again once closed.
The collector acknowledges a frame when it is in the spool, not when it is in
the store.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path
from typing import Callable, Iterator

from .errors import SegmentCorruptError, SpoolFullError
from .settings import SpoolSettings

RECORD = struct.Struct("<II")

#: Longer records are taken for damage: the largest frame has 511 bytes.
MAX_RECORD = 4096


class Spool:
    """Appends frames to segments and reads them back in order."""

    def __init__(
        self,
        settings: SpoolSettings,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self.settings = settings
        self.directory = Path(settings.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._monotonic = monotonic
        self._stream = None
        self._size = 0
        self._synced_at = monotonic()
        self._number = max((n for n, _ in self.segments()), default=0)

    def segments(self) -> list[tuple[int, Path]]:
        """Numbers and paths of all segments, oldest first."""
        found = []
        for path in self.directory.glob("*.seg"):
            if path.stem.isdigit():
                found.append((int(path.stem), path))
        return sorted(found)

    def append(self, frame: bytes) -> tuple[int, int]:
        """Write a frame; returns the segment's number and the record's offset.

        The record is handed to the operating system at once, and to the disk
        when `fsync_interval_s` have passed since the last time, so a power cut
        loses at most that many seconds. Loggers resend what was not
        acknowledged, and acknowledgements wait for `flush`.
        """
        if self._stream is None or self._size >= self.settings.segment_bytes:
            self._roll()
        offset = self._size
        record = RECORD.pack(len(frame), zlib.crc32(frame)) + frame
        self._stream.write(record)
        self._stream.flush()
        self._size += len(record)
        if self._monotonic() - self._synced_at >= self.settings.fsync_interval_s:
            self.flush()
        return self._number, offset

    def flush(self) -> None:
        """Make everything durable that was appended so far."""
        if self._stream is not None:
            os.fsync(self._stream.fileno())
        self._synced_at = self._monotonic()

    def _roll(self) -> None:
        """Close the segment and begin the next, if there is room for it."""
        if self._stream is not None:
            self.flush()
            self._stream.close()
            self._stream = None
        used = sum(path.stat().st_size for _, path in self.segments())
        if used + self.settings.segment_bytes > self.settings.max_total_bytes:
            raise SpoolFullError(f"{used} bytes in {self.directory}")
        self._number += 1
        self._stream = open(self.directory / f"{self._number:010d}.seg", "xb")
        self._size = 0
        # The directory entry must be durable as well, or a power cut leaves
        # data without a name. This was missing until 3.2.1.
        handle = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def read(self, number: int, offset: int = 0) -> Iterator[tuple[int, bytes]]:
        """Records of a segment from an offset, each with the offset behind it.

        A damaged record at the very end is a torn write and ends the reading
        silently. One in the middle raises `SegmentCorruptError`: skipping it
        would hide that the disk is going.
        """
        path = self.directory / f"{number:010d}.seg"
        data = path.read_bytes()
        at = offset
        while at < len(data):
            if at + RECORD.size > len(data):
                return
            length, crc = RECORD.unpack_from(data, at)
            end = at + RECORD.size + length
            if length > MAX_RECORD or end > len(data):
                if self._anything_valid_behind(data, at + 1):
                    raise SegmentCorruptError(f"{path.name} at {at}")
                return
            frame = data[at + RECORD.size:end]
            if zlib.crc32(frame) != crc:
                if end == len(data):
                    return
                raise SegmentCorruptError(f"{path.name} at {at}")
            yield end, frame
            at = end

    @staticmethod
    def _anything_valid_behind(data: bytes, at: int) -> bool:
        """Whether a whole record with a fitting checksum begins anywhere later."""
        while at + RECORD.size < len(data):
            length, crc = RECORD.unpack_from(data, at)
            end = at + RECORD.size + length
            if 0 < length <= MAX_RECORD and end <= len(data):
                if zlib.crc32(data[at + RECORD.size:end]) == crc:
                    return True
            at += 1
        return False

    def expire(self, read_up_to: int, now: float | None = None) -> list[int]:
        """Delete segments that were read to the end and are old enough.

        A segment that was not read is kept whatever its age. `read_up_to` is
        the number of the segment that the decoder stands in.
        """
        now = time.time() if now is None else now
        gone = []
        for number, path in self.segments():
            if number >= read_up_to:
                break
            if now - path.stat().st_mtime >= self.settings.retain_hours * 3600:
                path.unlink()
                gone.append(number)
        return gone

    def close(self) -> None:
        if self._stream is not None:
            self.flush()
            self._stream.close()
            self._stream = None
