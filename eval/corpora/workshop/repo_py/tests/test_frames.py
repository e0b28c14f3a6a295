import pytest

from ebbline.errors import ChecksumError, FrameError
from ebbline.frames import LOGGER_EPOCH, Frame, crc16, decode, encode


def frame(heights, **changes):
    values = dict(station_id=9, sequence=77, logged_at=LOGGER_EPOCH + 5000, flags=0, interval_s=60,
                  heights_mm=tuple(heights))
    values.update(changes)
    return Frame(**values)


def test_roundtrip_keeps_no_echo():
    original = frame([1200, None, 1203, 1180])
    assert decode(encode(original)).heights_mm == (1200, None, 1203, 1180)


def test_difference_of_minus_one_never_accumulates():
    falling = [1000 - i for i in range(40)]
    decoded = decode(encode(frame(falling))).heights_mm
    assert max(abs(a - b) for a, b in zip(falling, decoded)) <= 1


def test_flipped_bit_is_a_checksum_error():
    data = bytearray(encode(frame([5, 6, 7])))
    data[18] ^= 4
    with pytest.raises(ChecksumError):
        decode(bytes(data))


def test_unknown_version_with_good_checksum():
    data = bytearray(encode(frame([5]))[:-2])
    data[2] = 3
    data += crc16(bytes(data)).to_bytes(2, "little")
    with pytest.raises(FrameError, match="version 3"):
        decode(bytes(data))


def test_times_count_back_from_the_stamp():
    assert frame([1, 2, 3]).times() == [LOGGER_EPOCH + 4880, LOGGER_EPOCH + 4940, LOGGER_EPOCH + 5000]
