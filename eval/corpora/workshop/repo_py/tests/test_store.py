import pytest

from ebbline.quality import Flag, Sample
from ebbline.settings import StoreSettings
from ebbline.store import Store, shard_name

from helpers import START


def make(tmp_path):
    return Store(StoreSettings(directory=str(tmp_path)))


def test_shards_by_month():
    assert shard_name("ostrand", START) == "ostrand-2025-03.sqlite"


def test_better_flag_wins_and_worse_does_not(tmp_path):
    store = make(tmp_path)
    store.write("ostrand", [Sample(START, 100, Flag.SUSPECT, "spike")])
    store.write("ostrand", [Sample(START, 101, Flag.GOOD)])
    store.write("ostrand", [Sample(START, 102, Flag.BAD)])
    assert store.read("ostrand", START, START + 60)[0].height_mm == 101


def test_edited_flag_survives_a_backfill(tmp_path):
    store = make(tmp_path)
    store.write("ostrand", [Sample(START, 100)])
    store.edit_flag("ostrand", START, Flag.BAD, "senna", START + 500)
    store.write("ostrand", [Sample(START, 100)], backfill=True)
    assert store.read("ostrand", START, START + 60)[0].flag is Flag.BAD


def test_filled_is_refused(tmp_path):
    with pytest.raises(ValueError):
        make(tmp_path).write("ostrand", [Sample(START, 1, Flag.FILLED)])
