"""Binding to libthole by ctypes.

The C interface is small on purpose: four functions, plain arrays, no callbacks.
"""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path

from .errors import ChecksumError, FitError, FrameError
from .frames import NO_ECHO, Frame
from .settings import TholeSettings

log = logging.getLogger("ebbline.thole")

#: Interface version that this binding was written for; the minor part may differ.
ABI_MAJOR = 3

#: A frame has at most 255 samples, its count being one byte.
MAX_SAMPLES = 255


class TholeUnavailable(Exception):
    """The library is not there or has another interface; callers fall back."""


class _CFrame(ctypes.Structure):
    _fields_ = [
        ("station_id", ctypes.c_uint16),
        ("flags", ctypes.c_uint8),
        ("interval_s", ctypes.c_uint8),
        ("sequence", ctypes.c_uint32),
        ("logged_at", ctypes.c_int64),
        ("count", ctypes.c_uint32),
    ]


class Thole:
    """The loaded library. One object may be shared by threads."""

    def __init__(self, path: Path):
        try:
            self._lib = ctypes.CDLL(str(path))
        except OSError as error:
            raise TholeUnavailable(str(error)) from error
        self._lib.thole_abi_version.restype = ctypes.c_uint32
        version = self._lib.thole_abi_version()
        if version >> 16 != ABI_MAJOR:
            raise TholeUnavailable(f"interface {version >> 16}.{version & 0xFFFF}, {ABI_MAJOR}.x is needed")
        self._lib.thole_decode.restype = ctypes.c_int32
        self._lib.thole_fit.restype = ctypes.c_int32
        self._lib.thole_step_scan.restype = ctypes.c_int32

    def decode(self, data: bytes) -> Frame:
        """Same as `frames.decode`, and the same errors for the same bytes."""
        head = _CFrame()
        heights = (ctypes.c_int32 * MAX_SAMPLES)()
        code = self._lib.thole_decode(data, ctypes.c_size_t(len(data)), ctypes.byref(head), heights)
        if code == -2:
            raise ChecksumError("by thole")
        if code < 0:
            raise FrameError(f"thole code {code}")
        values = tuple(None if h == NO_ECHO else h for h in heights[:head.count])
        return Frame(head.station_id, head.sequence, head.logged_at, head.flags, head.interval_s, values)

    def step_scan(self, residuals_mm: list[float], drift: float = 0.5, limit: float = 5.0) -> int | None:
        """Index at which a level shift began, or None; see `step.rs`."""
        array = (ctypes.c_double * len(residuals_mm))(*residuals_mm)
        index = self._lib.thole_step_scan(array, ctypes.c_size_t(len(residuals_mm)),
                                          ctypes.c_double(drift), ctypes.c_double(limit))
        return None if index < 0 else index

    def fit(self, hours: list[float], heights_mm: list[float], speeds: list[float]) -> list[float]:
        """Mean, then cosine and sine part of each speed, by least squares."""
        n, m = len(hours), len(speeds)
        out = (ctypes.c_double * (1 + 2 * m))()
        code = self._lib.thole_fit((ctypes.c_double * n)(*hours), (ctypes.c_double * n)(*heights_mm),
                                   ctypes.c_size_t(n), (ctypes.c_double * m)(*speeds), ctypes.c_size_t(m), out)
        if code != 0:
            raise FitError("normal equations are singular, the record has too long a hole")
        return list(out)


def open_thole(settings: TholeSettings) -> Thole | None:
    """The library, or None where it is switched off or cannot be used.

    Falling back is logged once as a warning: a box that runs for months on the
    slow decoder should be noticed, but must not stop taking frames.
    """
    if not settings.enabled:
        return None
    try:
        return Thole(Path(settings.library))
    except TholeUnavailable as error:
        log.warning("decoding in Python: %s", error)
        return None
