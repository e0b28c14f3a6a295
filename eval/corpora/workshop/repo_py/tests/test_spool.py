import pytest

from ebbline.errors import SegmentCorruptError, SpoolFullError
from ebbline.settings import SpoolSettings
from ebbline.spool import Spool


def make(tmp_path, **changes):
    values = dict(directory=str(tmp_path), segment_bytes=200, max_total_bytes=2000, fsync_interval_s=0.0)
    values.update(changes)
    return Spool(SpoolSettings(**values))


def test_reads_back_in_order(tmp_path):
    spool = make(tmp_path)
    for i in range(10):
        spool.append(bytes([i]) * 30)
    read = [frame[0] for number, _ in spool.segments() for _, frame in spool.read(number)]
    assert read == list(range(10))


def test_torn_write_at_the_end_is_silent(tmp_path):
    spool = make(tmp_path)
    spool.append(b"a" * 30)
    spool.append(b"b" * 30)
    spool.close()
    path = spool.segments()[0][1]
    path.write_bytes(path.read_bytes()[:-7])
    assert [f for _, f in spool.read(1)] == [b"a" * 30]


def test_damage_in_the_middle_is_loud(tmp_path):
    spool = make(tmp_path)
    for letter in (b"a", b"b", b"c"):
        spool.append(letter * 30)
    spool.close()
    path = spool.segments()[0][1]
    data = bytearray(path.read_bytes())
    data[50] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(SegmentCorruptError):
        list(spool.read(1))


def test_full_spool_refuses(tmp_path):
    spool = make(tmp_path, max_total_bytes=800)
    with pytest.raises(SpoolFullError):
        for _ in range(100):
            spool.append(b"x" * 60)


def test_unread_segments_do_not_expire(tmp_path):
    spool = make(tmp_path, retain_hours=0)
    for _ in range(20):
        spool.append(b"x" * 60)
    assert spool.expire(read_up_to=1, now=9e9) == []
