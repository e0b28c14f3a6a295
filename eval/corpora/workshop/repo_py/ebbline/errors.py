"""Errors of the package. Each has a code that appears in logs and metrics."""

from __future__ import annotations


class EbblineError(Exception):
    """Base of all errors that the package raises on purpose."""

    code = "EB000"
    #: Whether trying the same thing again later can help.
    transient = False

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.code}: {text}" if text else self.code


class FrameError(EbblineError):
    """Bytes that are no frame: bad magic, bad length or unknown version."""

    code = "EB101"


class ChecksumError(FrameError):
    """The frame has the right shape, but its CRC does not fit its bytes."""

    code = "EB102"


class UnknownStationError(EbblineError):
    """The frame names a station id that stations.toml does not have."""

    code = "EB110"


class ClockJumpError(EbblineError):
    """A GPS fix would move a logger's clock further than is believed."""

    code = "EB120"

    def __init__(self, station: str, jump_s: float):
        super().__init__(f"fix of {station} jumps by {jump_s:+.1f} s")
        self.station = station
        self.jump_s = jump_s


class EpochRolloverError(ClockJumpError):
    """The jump is a whole multiple of 1024 weeks: the receiver rolled over."""

    code = "EB121"


class SpoolFullError(EbblineError):
    """No room for another segment; the collector stops acknowledging."""

    code = "EB130"
    transient = True


class SegmentCorruptError(EbblineError):
    """A record of a spool segment cannot be read, and it is not the last."""

    code = "EB131"


class ShardBusyError(EbblineError):
    """Another process held the lock of a shard for the whole busy timeout."""

    code = "EB140"
    transient = True


class DatumGapError(EbblineError):
    """A height is asked for at a time for which no datum entry is valid."""

    code = "EB150"


class FitError(EbblineError):
    """Too little or too gappy data for the constituents that were asked for."""

    code = "EB160"


class ConfigError(EbblineError):
    """A setting is missing, has the wrong type, or contradicts another."""

    code = "EB170"


class AuthError(EbblineError):
    """The API key is missing, unknown or withdrawn."""

    code = "EB180"


class SpanTooLongError(EbblineError):
    """A request of the API asks for more days than ``max_span_days``."""

    code = "EB181"
