"""The store: one SQLite file per station and month, called a shard."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from . import metrics
from .errors import ShardBusyError
from .quality import Flag, Sample
from .settings import StoreSettings

SCHEMA = """
CREATE TABLE IF NOT EXISTS sample (
    at INTEGER PRIMARY KEY,
    height_mm INTEGER,
    flag INTEGER NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    revision INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS edit (
    at INTEGER NOT NULL,
    edited_at INTEGER NOT NULL,
    old_flag INTEGER NOT NULL,
    new_flag INTEGER NOT NULL,
    who TEXT NOT NULL
);
"""

#: Shards that are open at once; the least recently used is closed first.
MAX_OPEN = 24


def shard_name(station: str, at: int) -> str:
    """File name of the shard that a time belongs to, months in UTC."""
    return f"{station}-{datetime.fromtimestamp(at, timezone.utc):%Y-%m}.sqlite"


class Store:
    def __init__(self, settings: StoreSettings):
        self.settings = settings
        self.directory = Path(settings.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, sqlite3.Connection] = {}

    def _shard(self, name: str) -> sqlite3.Connection:
        connection = self._open.pop(name, None)
        if connection is None:
            connection = sqlite3.connect(self.directory / name,
                                         timeout=self.settings.busy_timeout_ms / 1000)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {self.settings.wal_autocheckpoint_pages}")
            connection.executescript(SCHEMA)
        self._open[name] = connection
        if len(self._open) > MAX_OPEN:
            oldest = next(iter(self._open))
            self._open.pop(oldest).close()
        return connection

    def write(self, station: str, samples: list[Sample], backfill: bool = False) -> int:
        """Write samples; returns how many were new or better.

        A sample that is there already is replaced only by one with a better
        flag, or, in a backfill, with the same flag. Flags that a person set are
        never touched (revision > 0). Filled samples are refused.
        """
        if any(s.flag is Flag.FILLED for s in samples):
            raise ValueError("filled samples are not stored")
        by_shard: dict[str, list[Sample]] = {}
        for sample in samples:
            by_shard.setdefault(shard_name(station, sample.at), []).append(sample)
        changed = 0
        compare = "<=" if backfill else "<"
        for name, part in by_shard.items():
            connection = self._shard(name)
            try:
                with connection:
                    before = connection.total_changes
                    connection.executemany(
                        "INSERT INTO sample (at, height_mm, flag, reason) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (at) DO UPDATE SET height_mm = excluded.height_mm, "
                        "flag = excluded.flag, reason = excluded.reason "
                        f"WHERE excluded.flag {compare} sample.flag AND sample.revision = 0",
                        [(s.at, s.height_mm, int(s.flag), s.reason) for s in part],
                    )
                    changed += connection.total_changes - before
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    metrics.count("shard_busy", shard=name)
                    raise ShardBusyError(name) from error
                raise
        return changed

    def edit_flag(self, station: str, at: int, flag: Flag, who: str, now: int) -> None:
        """A person's decision about one sample, kept with name and time."""
        connection = self._shard(shard_name(station, at))
        with connection:
            row = connection.execute("SELECT flag FROM sample WHERE at = ?", (at,)).fetchone()
            if row is None:
                raise KeyError(f"{station} has no sample at {at}")
            connection.execute("INSERT INTO edit VALUES (?, ?, ?, ?, ?)", (at, now, row[0], int(flag), who))
            connection.execute("UPDATE sample SET flag = ?, revision = revision + 1 WHERE at = ?",
                               (int(flag), at))

    def read(self, station: str, begin: int, end: int) -> list[Sample]:
        """Samples of a half-open interval in order; months without a shard are empty."""
        out: list[Sample] = []
        name, at = "", begin
        while at < end:
            name = shard_name(station, at)
            if (self.directory / name).exists():
                rows = self._shard(name).execute(
                    "SELECT at, height_mm, flag, reason FROM sample WHERE at >= ? AND at < ? ORDER BY at",
                    (begin, end)).fetchall()
                out.extend(Sample(t, h, Flag(f), r) for t, h, f, r in rows)
            at = _next_month(at)
        return out

    def snapshot(self, name: str, target: Path) -> None:
        """Copy a shard while it is written, by SQLite's own backup.

        A plain copy of the file is not enough: without its WAL it lacks the last
        minutes, and with it both may not fit together.
        """
        with closing(sqlite3.connect(target)) as copy:
            self._shard(name).backup(copy)

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()


def _next_month(at: int) -> int:
    day = datetime.fromtimestamp(at, timezone.utc)
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return int(datetime(year, month, 1, tzinfo=timezone.utc).timestamp())
