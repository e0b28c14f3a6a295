from ebbline.alerts import AlertEngine, Rule, in_quiet_hours
from ebbline.quality import Flag
from ebbline.surge import Level

from helpers import START, registry

RULE = Rule("quay", "ostrand", 4350, "severe", ("pager",), quiet_hours=("21:00", "05:00"))


def engine(rule=RULE):
    sent = []
    return AlertEngine([rule], registry(), sent.append), sent


def level(minute, total, flag=Flag.GOOD, start=START + 12 * 3600):
    return Level(start + 60 * minute, total, total - 100, 100, flag)


def test_clears_only_after_the_hold():
    machine, sent = engine()
    machine.feed("ostrand", level(0, 4360))
    for minute in range(1, 20):
        machine.feed("ostrand", level(minute, 4280))
    assert [n.kind for n in sent] == ["raised"]
    machine.feed("ostrand", level(21, 4280))
    assert [n.kind for n in sent] == ["raised", "cleared"]


def test_between_threshold_and_margin_nothing_clears():
    machine, sent = engine()
    machine.feed("ostrand", level(0, 4360))
    for minute in range(1, 60):
        machine.feed("ostrand", level(minute, 4310))
    assert [n.kind for n in sent] == ["raised"]


def test_suspect_level_does_not_raise():
    machine, sent = engine()
    machine.feed("ostrand", level(0, 4900, Flag.SUSPECT))
    assert sent == []


def test_quiet_hours_follow_local_time():
    # 20:30 UTC on 1 July is 21:30 at the quay.
    assert in_quiet_hours(RULE, 1751401800, "Europe/London")
    assert not in_quiet_hours(RULE, 1751401800, "UTC")


def test_quiet_hours_after_the_change_of_the_clocks():
    # 20:35 UTC on 2 November is 20:35 at the quay, where people still work.
    assert not in_quiet_hours(RULE, 1762115700, "Europe/London")
    assert in_quiet_hours(RULE, 1762115700 + 1800, "Europe/London")


def test_severe_is_raised_at_night():
    machine, sent = engine()
    machine.feed("ostrand", level(0, 4400, start=START + 2 * 3600))
    assert [n.kind for n in sent] == ["raised"]
