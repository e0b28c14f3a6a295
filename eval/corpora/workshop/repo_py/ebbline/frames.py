"""Frames of the loggers, format TG2, and the decoder in pure Python.

Layout, little endian::

    0   2  magic, b"TG"
    2   1  version, 2
    3   1  flags: 1 backfill, 2 battery low, 4 clock free-running, 8 lid open
    4   2  station id
    6   4  sequence number, wraps at 2**32
    10  4  seconds since 2020-01-01T00:00:00Z by the logger's clock
    14  1  number of samples
    15  1  interval of the samples in seconds
    16  .. first height as int16 in millimetres, then zigzag varint differences
    -2  2  CRC-16 over everything before it

The library ``thole`` decodes the same in Rust. This module stays as the
reference and as the fallback where the library cannot be loaded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime, timezone

from .errors import ChecksumError, FrameError

MAGIC = b"TG"
VERSION = 2
HEADER = struct.Struct("<2sBBHIIBB")

FLAG_BACKFILL = 1
FLAG_BATTERY_LOW = 2
FLAG_FREE_RUNNING = 4
FLAG_LID_OPEN = 8

#: Start of the loggers' count of seconds.
LOGGER_EPOCH = int(datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp())

#: A height of this value means that the sensor had no echo, not a level.
NO_ECHO = -32768


@dataclass(frozen=True)
class Frame:
    """One decoded frame; heights are relative to the gauge zero."""

    station_id: int
    sequence: int
    logged_at: int
    flags: int
    interval_s: int
    heights_mm: tuple[int | None, ...]

    @property
    def is_backfill(self) -> bool:
        return bool(self.flags & FLAG_BACKFILL)

    @property
    def free_running(self) -> bool:
        """The logger had no GPS fix since its clock was set last."""
        return bool(self.flags & FLAG_FREE_RUNNING)

    def times(self) -> list[int]:
        """Unix times of the samples: the stamp is that of the last one."""
        last = self.logged_at
        count = len(self.heights_mm)
        return [last - (count - 1 - i) * self.interval_s for i in range(count)]


def crc16(data: bytes) -> int:
    """CRC-16 with the polynomial 0x8005 reflected, start 0xFFFF."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 31)


def unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most three bytes; returns value and end."""
    value = shift = 0
    for count in range(3):
        if at >= len(data):
            raise FrameError("varint runs over the end of the frame")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise FrameError("varint has more than three bytes")


def decode(data: bytes) -> Frame:
    """Decode one frame, or raise `FrameError` or `ChecksumError`.

    The checksum is looked at before the version, so that line noise is never
    reported as a logger with unknown firmware.
    """
    if len(data) < HEADER.size + 4:
        raise FrameError(f"{len(data)} bytes are too few for a frame")
    if data[:2] != MAGIC:
        raise FrameError("bad magic")
    body, stored = data[:-2], int.from_bytes(data[-2:], "little")
    if crc16(body) != stored:
        raise ChecksumError(f"stored {stored:04x}, computed {crc16(body):04x}")
    _, version, flags, station_id, sequence, stamp, count, interval = HEADER.unpack_from(body)
    if version != VERSION:
        raise FrameError(f"version {version} is not supported")
    if count == 0 or interval == 0:
        raise FrameError("a frame has at least one sample and an interval")
    heights: list[int | None] = []
    value = int.from_bytes(body[16:18], "little", signed=True)
    heights.append(None if value == NO_ECHO else value)
    at, last = 18, 0 if value == NO_ECHO else value
    while len(heights) < count:
        raw, at = read_varint(body, at)
        if raw == 1:
            # Zigzag of -1 is 1; loggers never send it for a difference of one
            # millimetre down but round to even, so it is free to mean "no echo".
            heights.append(None)
            continue
        last += unzigzag(raw)
        heights.append(last)
    if at != len(body):
        raise FrameError(f"{len(body) - at} bytes behind the last sample")
    return Frame(station_id, sequence, LOGGER_EPOCH + stamp, flags, interval, tuple(heights))


def encode(frame: Frame) -> bytes:
    """Encode a frame, for tests and for the replay of memory cards.

    Differences of -1 are written as -2, as the loggers do; the error is taken
    up by the next difference, so it never grows beyond a millimetre.
    """
    head = HEADER.pack(MAGIC, VERSION, frame.flags, frame.station_id, frame.sequence,
                       frame.logged_at - LOGGER_EPOCH, len(frame.heights_mm), frame.interval_s)
    first = frame.heights_mm[0]
    out = bytearray(head)
    out += (NO_ECHO if first is None else first).to_bytes(2, "little", signed=True)
    last = first or 0
    for height in frame.heights_mm[1:]:
        if height is None:
            out.append(1)
            continue
        step = height - last
        if step == -1:
            step = -2
        last += step
        raw = zigzag(step)
        while raw >= 0x80:
            out.append(raw & 0x7F | 0x80)
            raw >>= 7
        out.append(raw)
    out += crc16(bytes(out)).to_bytes(2, "little")
    return bytes(out)
