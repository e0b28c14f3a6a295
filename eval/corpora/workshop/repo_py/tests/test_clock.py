import pytest

from ebbline.clock import WEEK_S, ClockModel, Fix
from ebbline.errors import ClockJumpError, EpochRolloverError
from ebbline.settings import ClockSettings

T = 1741910400


def model(*fixes):
    clock = ClockModel("ostrand", ClockSettings())
    for fix in fixes:
        clock.add_fix(fix)
    return clock


def test_offset_is_linear_between_fixes():
    assert model(Fix(T, 0.0), Fix(T + 1000, 4.0)).offset_at(T + 250) == 1.0


def test_last_offset_is_carried_on():
    assert model(Fix(T, 0.0), Fix(T + 1000, 4.0)).offset_at(T + 99999) == 4.0


def test_rollover_is_told_apart():
    clock = model(Fix(T, 0.0))
    with pytest.raises(EpochRolloverError):
        clock.add_fix(Fix(T + 60, -1024 * WEEK_S + 3.0))
    with pytest.raises(ClockJumpError) as caught:
        clock.add_fix(Fix(T + 60, 4000.0))
    assert not isinstance(caught.value, EpochRolloverError)
