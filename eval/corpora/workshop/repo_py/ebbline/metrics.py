"""Counters and gauges in memory, printed as plain lines for the harbour's scraper."""

from __future__ import annotations

import threading
from collections import defaultdict

_lock = threading.Lock()
_counters: dict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
_gauges: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

#: More series than this are refused, so that a label with free text cannot eat
#: the memory of the box. The refused ones are counted in `series_refused`.
MAX_SERIES = 2000


def _key(name: str, labels: dict[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def count(name: str, by: float = 1.0, **labels: str) -> None:
    """Add to a counter, making it if it is new and there is room."""
    key = _key(name, labels)
    with _lock:
        if key not in _counters and len(_counters) >= MAX_SERIES:
            _counters[("series_refused", ())] += 1
            return
        _counters[key] += by


def gauge(name: str, value: float, **labels: str) -> None:
    with _lock:
        _gauges[_key(name, labels)] = value


def read(name: str, **labels: str) -> float:
    with _lock:
        return _counters.get(_key(name, labels), 0.0)


def render() -> str:
    """All series as ``ebbline_name{label="value"} number`` lines, sorted."""
    with _lock:
        items = list(_counters.items()) + list(_gauges.items())
    lines = []
    for (name, labels), value in sorted(items):
        inner = ",".join(f'{k}="{v}"' for k, v in labels)
        lines.append(f"ebbline_{name}{{{inner}}} {value:g}" if inner else f"ebbline_{name} {value:g}")
    return "\n".join(lines) + "\n"
