from ebbline.gaps import fill, residual_bridge
from ebbline.harmonics import Constant, TideModel
from ebbline.quality import Flag, Sample
from ebbline.settings import GapSettings

from helpers import START

MODEL = TideModel("ostrand", 2500.0, (Constant("M2", 1500.0, 40.0),), 400)


def test_bridge_meets_both_ends():
    assert residual_bridge(0, 200, 80.0, -30.0, 95) > 79.9
    assert abs(residual_bridge(200, 200, 80.0, -30.0, 95) + 30.0) < 0.1


def test_short_gap_follows_the_tide():
    ends = [Sample(START, round(MODEL.predict(START))), Sample(START + 600, round(MODEL.predict(START + 600)))]
    filled = fill(ends, MODEL, 0, GapSettings())
    assert len(filled) == 11
    assert all(abs(s.height_mm - MODEL.predict(s.at)) <= 1 for s in filled)
    assert filled[5].flag is Flag.FILLED


def test_long_gap_stays_open():
    ends = [Sample(START, 2500), Sample(START + 7 * 3600, 2600)]
    assert len(fill(ends, MODEL, 0, GapSettings())) == 2
