"""Filling of holes, for exports and for the surge display.

Filled samples carry `Flag.FILLED` and are never written to the store.
"""

from __future__ import annotations

import math

from .harmonics import TideModel
from .quality import Flag, Sample
from .settings import GapSettings


def find_gaps(samples: list[Sample], step_s: int = 60) -> list[tuple[int, int]]:
    """Index pairs (before, after) between which samples are missing or bad.

    A gap at either end of the list has nothing to lean on and is left out.
    """
    usable = [i for i, s in enumerate(samples) if s.height_mm is not None and s.flag < Flag.BAD]
    pairs = []
    for a, b in zip(usable, usable[1:]):
        if samples[b].at - samples[a].at > step_s:
            pairs.append((a, b))
    return pairs


def residual_bridge(minutes_in: float, total: float, left: float, right: float, decay: float) -> float:
    """Residual inside of a long gap: decays from both ends towards zero.

    The two exponentials are added, each weighted by how near its end is, so
    that both ends are met exactly and the middle falls back to the prediction.
    """
    share = minutes_in / total
    from_left = left * math.exp(-minutes_in / decay)
    from_right = right * math.exp(-(total - minutes_in) / decay)
    return (1 - share) * from_left + share * from_right


def fill(samples: list[Sample], model: TideModel, zero_mm: int, settings: GapSettings) -> list[Sample]:
    """Close the gaps that may be closed; longer ones stay as they are.

    Up to `linear_max_minutes` the residual (level minus prediction) is joined
    by a straight line; the tide itself is never interpolated, because around
    low water its curve turns within ten minutes. Up to `model_max_minutes`
    the residual decays. Beyond it nothing is invented.
    """
    out = [s for s in samples if s.height_mm is not None and s.flag < Flag.BAD]
    added: list[Sample] = []
    for a, b in find_gaps(samples):
        left, right = samples[a], samples[b]
        total = (right.at - left.at) / 60
        if total > settings.model_max_minutes:
            continue
        residual_left = left.height_mm + zero_mm - model.predict(left.at)
        residual_right = right.height_mm + zero_mm - model.predict(right.at)
        for at in range(left.at + 60, right.at, 60):
            inside = (at - left.at) / 60
            if total <= settings.linear_max_minutes:
                residual = residual_left + (residual_right - residual_left) * inside / total
                reason = "linear"
            else:
                residual = residual_bridge(inside, total, residual_left, residual_right,
                                           settings.residual_decay_minutes)
                reason = "model"
            height = round(model.predict(at) + residual - zero_mm)
            added.append(Sample(at, height, Flag.FILLED, reason))
    return sorted(out + added, key=lambda s: s.at)
