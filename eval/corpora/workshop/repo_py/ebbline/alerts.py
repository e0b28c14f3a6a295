"""Rules, hysteresis and delivery of flood alerts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import datetime, time as clock_time, timezone
from enum import Enum
from pathlib import Path
from typing import Callable
from zoneinfo import ZoneInfo

from . import metrics
from .errors import ConfigError
from .quality import Flag
from .stations import StationRegistry
from .surge import Level


class State(Enum):
    CALM = "calm"
    RAISED = "raised"
    #: Below the clear level, but not yet for `hold_minutes`.
    FALLING = "falling"


@dataclass(frozen=True)
class Rule:
    name: str
    station: str
    threshold_mm: int
    severity: str
    channels: tuple[str, ...]
    clear_margin_mm: int = 60
    hold_minutes: int = 20
    repeat_minutes: int = 180
    min_quality: str = "good"
    quiet_hours: tuple[str, str] | None = None

    def accepts(self, flag: Flag) -> bool:
        """Whether a level of this quality may change the rule's state."""
        return flag <= (Flag.SUSPECT if self.min_quality == "suspect" else Flag.GOOD)


@dataclass
class RuleState:
    state: State = State.CALM
    raised_at: int = 0
    below_since: int = 0
    last_sent: int = 0


@dataclass(frozen=True)
class Notice:
    rule: str
    kind: str  # raised, repeat or cleared
    at: int
    level_mm: int
    channels: tuple[str, ...]


def in_quiet_hours(rule: Rule, at: int, zone: str) -> bool:
    """Whether a time lies in the rule's quiet hours, by the station's own clock.

    The hours are local: until 3.3.2 they were compared in UTC, and after the
    change of the clocks Ostrand was not woken. Hours that begin in the evening
    and end in the morning wrap around midnight.
    """
    if rule.quiet_hours is None:
        return False
    begin, end = (clock_time.fromisoformat(text) for text in rule.quiet_hours)
    local = datetime.fromtimestamp(at, timezone.utc).astimezone(ZoneInfo(zone)).time()
    if begin <= end:
        return begin <= local < end
    return local >= begin or local < end


@dataclass
class AlertEngine:
    """Feeds levels to rules and hands notices to a sender."""

    rules: list[Rule]
    registry: StationRegistry
    send: Callable[[Notice], None]
    states: dict[str, RuleState] = field(default_factory=dict)

    def feed(self, station: str, level: Level) -> None:
        for rule in self.rules:
            if rule.station == station and rule.accepts(level.flag):
                self._step(rule, level)

    def _step(self, rule: Rule, level: Level) -> None:
        """One level through the hysteresis of one rule.

        Raised at the threshold, cleared only when the level has stayed
        `clear_margin_mm` below it for `hold_minutes` without interruption.
        """
        state = self.states.setdefault(rule.name, RuleState())
        clear_at = rule.threshold_mm - rule.clear_margin_mm
        if state.state is State.CALM:
            if level.total_mm >= rule.threshold_mm:
                state.state, state.raised_at = State.RAISED, level.at
                self._notify(rule, "raised", level, state)
            return
        if level.total_mm > clear_at:
            state.state = State.RAISED
            if level.at - state.last_sent >= rule.repeat_minutes * 60:
                self._notify(rule, "repeat", level, state)
            return
        if state.state is State.RAISED:
            state.state, state.below_since = State.FALLING, level.at
        elif level.at - state.below_since >= rule.hold_minutes * 60:
            state.state = State.CALM
            self._notify(rule, "cleared", level, state)

    def _notify(self, rule: Rule, kind: str, level: Level, state: RuleState) -> None:
        """Send a notice unless it is quiet; severe ones are silenced only as repeats."""
        zone = self.registry.by_key(rule.station).timezone
        quiet = in_quiet_hours(rule, level.at, zone)
        if quiet and (rule.severity != "severe" or kind == "repeat"):
            metrics.count("notices_silenced", rule=rule.name)
            return
        state.last_sent = level.at
        metrics.count("notices_sent", rule=rule.name, kind=kind)
        self.send(Notice(rule.name, kind, level.at, level.total_mm, rule.channels))


def load_rules(path: Path, registry: StationRegistry) -> list[Rule]:
    """Read alerts.toml; a rule for a class C station is refused.

    Class C gauges are not levelled each year, so no gate may hang on them.
    """
    with open(path, "rb") as stream:
        document = tomllib.load(stream)
    defaults, channels = document.get("defaults", {}), document.get("channels", {})
    rules = []
    for name, table in document.get("rules", {}).items():
        merged = {**defaults, **table}
        station = registry.by_key(merged["station"])
        if station.class_ == "C":
            raise ConfigError(f"rule {name}: {station.key} is of class C")
        for channel in merged["channels"]:
            if channel not in channels:
                raise ConfigError(f"rule {name}: no channel {channel}")
        merged["channels"] = tuple(merged["channels"])
        if merged.get("quiet_hours"):
            merged["quiet_hours"] = tuple(merged["quiet_hours"])
        rules.append(Rule(name=name, **merged))
    return rules
