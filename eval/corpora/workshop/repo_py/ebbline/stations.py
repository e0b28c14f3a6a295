"""The register of stations, read from stations.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from .errors import ConfigError, UnknownStationError

CLASSES = ("A", "B", "C")
SENSORS = ("radar", "float", "pressure")


@dataclass(frozen=True)
class Station:
    """One gauge. `key` is its name in files, `id` its number on the wire."""

    key: str
    id: int
    name: str
    class_: str
    latitude: float
    longitude: float
    sensor: str
    zero_mm: int
    range_mm: tuple[int, int]
    timezone: str
    modem: str
    frame_minutes: int = 1
    hampel_k: float | None = None
    barometer_from: str | None = None

    @property
    def needs_air_pressure(self) -> bool:
        """Pressure gauges measure water and air together."""
        return self.sensor == "pressure"

    def silence_limit_s(self) -> int:
        """Seconds without a frame after which the station counts as silent.

        Class A: three frames missed. Others: ten, but never below a quarter of
        an hour. The hourly buoy is thus silent after ten hours and not sooner.
        """
        missed = 3 if self.class_ == "A" else 10
        limit = missed * self.frame_minutes * 60
        return limit if self.class_ == "A" else max(limit, 900)


class StationRegistry:
    """Stations by key and by wire id; ids are never given out twice."""

    def __init__(self, stations: list[Station]):
        self._by_key = {s.key: s for s in stations}
        self._by_id: dict[int, Station] = {}
        for station in stations:
            other = self._by_id.setdefault(station.id, station)
            if other is not station:
                raise ConfigError(f"{station.key} and {other.key} share the id {station.id}")
        for station in stations:
            source = station.barometer_from
            if source is not None and source not in self._by_key:
                raise ConfigError(f"{station.key}: no station {source} for the air pressure")

    def __iter__(self) -> Iterator[Station]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def by_key(self, key: str) -> Station:
        try:
            return self._by_key[key]
        except KeyError:
            raise UnknownStationError(key) from None

    def by_wire_id(self, wire_id: int) -> Station:
        try:
            return self._by_id[wire_id]
        except KeyError:
            raise UnknownStationError(f"wire id {wire_id}") from None


def load_stations(path: Path) -> StationRegistry:
    """Read the register and check the words that have few allowed values."""
    with open(path, "rb") as stream:
        tables = tomllib.load(stream)
    stations = []
    for key, table in tables.items():
        table = dict(table)
        table["class_"] = table.pop("class")
        table["range_mm"] = tuple(table["range_mm"])
        station = Station(key=key, **table)
        if station.class_ not in CLASSES or station.sensor not in SENSORS:
            raise ConfigError(f"{key}: class {station.class_}, sensor {station.sensor}")
        stations.append(station)
    return StationRegistry(stations)
