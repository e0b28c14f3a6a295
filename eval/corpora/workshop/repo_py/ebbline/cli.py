"""The command line: ``ebbline COMMAND``."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging.config
import sys
import time
from pathlib import Path

from . import __version__, frames
from .auth import new_key
from .backfill import load_card
from .clock import ClockModel, Fix
from .collector import Collector
from .errors import EbblineError
from .export import completeness, write_month
from .pipeline import Pipeline
from .settings import load
from .spool import Spool
from .stations import load_stations
from .store import Store
from .tholelib import open_thole

#: Exit codes: 0 done, 2 wrong usage, 3 an error of the package, 4 partly done.
EXIT_ERROR = 3
EXIT_PARTIAL = 4


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ebbline")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--config", type=Path, default=Path("/etc/ebbline/ebbline.toml"))
    sub = parser.add_subparsers(dest="command", required=True)
    sub.add_parser("collect", help="take frames from the loggers")
    sub.add_parser("pipeline", help="follow the spool into the store")
    card = sub.add_parser("card", help="bring in the image of a memory card")
    card.add_argument("station")
    card.add_argument("image", type=Path)
    card.add_argument("--pulled-offset", type=float, required=True,
                      help="seconds to add to the logger's clock when the card was pulled")
    card.add_argument("--dry-run", action="store_true")
    replay = sub.add_parser("replay", help="read spool segments again")
    replay.add_argument("--from-segment", type=int, required=True)
    export = sub.add_parser("export", help="write a month as CSV")
    export.add_argument("station")
    export.add_argument("month", help="YYYY-MM")
    sub.add_parser("new-key", help="make a key for the API")
    return parser


def month_bounds(month: str) -> tuple[int, int]:
    """First second of a month and of the next one, in UTC."""
    from datetime import datetime, timezone

    year, number = (int(part) for part in month.split("-"))
    following = (year + 1, 1) if number == 12 else (year, number + 1)
    begin = datetime(year, number, 1, tzinfo=timezone.utc)
    end = datetime(*following, 1, tzinfo=timezone.utc)
    return int(begin.timestamp()), int(end.timestamp())


def run(args: argparse.Namespace) -> int:
    if args.command == "new-key":
        key, stored = new_key()
        print(key)
        print(stored, file=sys.stderr)
        return 0
    settings = load(args.config)
    logging.config.dictConfig(json.loads(args.config.with_name("logging.json").read_text()))
    registry = load_stations(args.config.with_name("stations.toml"))
    if args.command == "collect":
        collector = Collector(settings.collector, registry, Spool(settings.spool))
        asyncio.run(collector.run())
        return 0
    store = Store(settings.store)
    if args.command == "export":
        begin, end = month_bounds(args.month)
        samples = store.read(registry.by_key(args.station).key, begin, end)
        print(write_month(args.station, args.month, samples, settings.export))
        return 0 if completeness(samples, begin, end) >= 0.95 else EXIT_PARTIAL
    if args.command == "card":
        station = registry.by_key(args.station)
        clock = ClockModel(station.key, settings.clock)
        clock.add_fix(Fix(int(time.time()), args.pulled_offset))
        report = load_card(args.image, station, clock, store, settings.quality, args.dry_run)
        print(f"{report.frames} frames, {report.written} samples written, "
              f"{len(report.damaged_pages)} pages damaged, {report.foreign} foreign")
        return EXIT_PARTIAL if report.damaged_pages else 0
    thole = open_thole(settings.thole)
    pipeline = Pipeline(settings, registry, Spool(settings.spool), store,
                        thole.decode if thole else frames.decode)
    if args.command == "replay":
        # The cursor only ever moves back here; a segment ahead of it would
        # leave frames out for good.
        if args.from_segment > pipeline.cursor.segment:
            print("replay goes back, not forward", file=sys.stderr)
            return 2
        pipeline.cursor.segment, pipeline.cursor.offset = args.from_segment, 0
        print(f"{pipeline.drain()} frames")
        return 0
    while True:
        pipeline.drain()
        time.sleep(1.0)


def main(argv: list[str] | None = None) -> int:
    try:
        return run(build_parser().parse_args(argv))
    except EbblineError as error:
        print(f"ebbline: {error}", file=sys.stderr)
        return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
