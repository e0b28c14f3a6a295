"""Shared by the tests: a register with two stations and plain samples."""

from ebbline.quality import Sample
from ebbline.stations import Station, StationRegistry

START = 1741910400  # 2025-03-14T00:00:00Z


def station(key="lannoch_pier", **changes):
    values = dict(key=key, id=9, name="Lannoch Pier", class_="B", latitude=57.7, longitude=-5.1,
                  sensor="float", zero_mm=41, range_mm=(-700, 5200), timezone="Europe/London",
                  modem="northern")
    values.update(changes)
    return Station(**values)


def registry():
    return StationRegistry([station(), station("ostrand", id=17, class_="A", sensor="radar", zero_mm=7)])


def samples(heights, start=START):
    return [Sample(start + 60 * i, h) for i, h in enumerate(heights)]
