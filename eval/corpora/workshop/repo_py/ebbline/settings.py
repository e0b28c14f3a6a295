"""Settings: one TOML file, a file of the host over it, the environment on top."""

from __future__ import annotations

import os
import socket
import tomllib
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from .errors import ConfigError

#: Environment variables that begin so override settings, see `apply_environment`.
ENV_PREFIX = "EBBLINE_"


@dataclass
class CollectorSettings:
    bind: str = "0.0.0.0"
    port: int = 4717
    idle_timeout_s: float = 190.0
    max_connections: int = 96
    dedup_window: int = 4096


@dataclass
class SpoolSettings:
    directory: str = "/var/lib/ebbline/spool"
    segment_bytes: int = 2 * 1024 * 1024
    fsync_interval_s: float = 5.0
    retain_hours: int = 72
    max_total_bytes: int = 1 << 30


@dataclass
class ClockSettings:
    max_fix_jump_s: float = 90.0
    max_drift_ppm: float = 4.0
    epoch_weeks_guard: int = 1024


@dataclass
class QualitySettings:
    hampel_window: int = 11
    hampel_k: float = 4.5
    flatline_minutes: int = 25
    rate_limit_mm_per_min: int = 120
    range_margin_mm: int = 600


@dataclass
class GapSettings:
    linear_max_minutes: int = 12
    model_max_minutes: int = 360
    residual_decay_minutes: float = 95.0


@dataclass
class StoreSettings:
    directory: str = "/var/lib/ebbline/shards"
    busy_timeout_ms: int = 4000
    wal_autocheckpoint_pages: int = 400


@dataclass
class ApiSettings:
    bind: str = "127.0.0.1"
    port: int = 8317
    max_span_days: int = 62
    rate_per_s: float = 1.0
    burst: int = 60


@dataclass
class ExportSettings:
    directory: str = "/var/lib/ebbline/export"
    missing_value: str = ""
    decimals: int = 3


@dataclass
class TholeSettings:
    library: str = "/opt/ebbline/lib/libthole.so"
    enabled: bool = True


@dataclass
class Settings:
    """All settings, one attribute per table of ebbline.toml."""

    collector: CollectorSettings = field(default_factory=CollectorSettings)
    spool: SpoolSettings = field(default_factory=SpoolSettings)
    clock: ClockSettings = field(default_factory=ClockSettings)
    quality: QualitySettings = field(default_factory=QualitySettings)
    gaps: GapSettings = field(default_factory=GapSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    export: ExportSettings = field(default_factory=ExportSettings)
    thole: TholeSettings = field(default_factory=TholeSettings)


def _merge(target: Any, table: dict[str, Any], where: str) -> None:
    """Write the keys of a table into a dataclass; an unknown key is an error."""
    known = {f.name: f for f in fields(target)}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown setting {where}{key}")
        current = getattr(target, key)
        if is_dataclass(current):
            if not isinstance(value, dict):
                raise ConfigError(f"{where}{key} must be a table")
            _merge(current, value, f"{where}{key}.")
        else:
            setattr(target, key, _coerce(current, value, where + key))


def _coerce(current: Any, value: Any, name: str) -> Any:
    """Give a value the type of the default: strings of the environment, too."""
    kind = type(current)
    if kind is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("1", "true", "yes", "on"):
            return True
        if str(value).lower() in ("0", "false", "no", "off"):
            return False
        raise ConfigError(f"{name} must be true or false, not {value!r}")
    try:
        return kind(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} must be {kind.__name__}, not {value!r}") from error


def apply_environment(settings: Settings, environ: dict[str, str]) -> list[str]:
    """Override settings from variables such as ``EBBLINE_SPOOL__SEGMENT_BYTES``.

    Two underscores part the table from the key, because keys have single ones.
    Returns the names that were applied, for the line that is logged at start.
    """
    applied = []
    for name, value in sorted(environ.items()):
        if not name.startswith(ENV_PREFIX) or "__" not in name:
            continue
        table, _, key = name[len(ENV_PREFIX):].lower().partition("__")
        _merge(settings, {table: {key: value}}, "")
        applied.append(f"{table}.{key}")
    return applied


def check(settings: Settings) -> None:
    """Refuse settings that contradict each other before anything is opened."""
    if settings.spool.segment_bytes * 4 > settings.spool.max_total_bytes:
        raise ConfigError("spool.max_total_bytes must hold at least four segments")
    if settings.gaps.linear_max_minutes >= settings.gaps.model_max_minutes:
        raise ConfigError("gaps.linear_max_minutes must be below gaps.model_max_minutes")
    if settings.quality.hampel_window % 2 == 0:
        raise ConfigError("quality.hampel_window must be odd")
    if settings.collector.idle_timeout_s <= 150:
        raise ConfigError("collector.idle_timeout_s must exceed the loggers' 150 s")


def load(path: Path, host: str | None = None, environ: dict[str, str] | None = None) -> Settings:
    """Read a settings file, the one of the host beside it, and the environment."""
    settings = Settings()
    host = host or socket.gethostname().split(".")[0]
    for candidate in (path, path.with_name(f"{host}.toml")):
        if candidate == path or candidate.exists():
            with open(candidate, "rb") as stream:
                _merge(settings, tomllib.load(stream), "")
    apply_environment(settings, dict(os.environ) if environ is None else environ)
    check(settings)
    return settings
