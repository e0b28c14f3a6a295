from ebbline.quality import Flag, check_flatline, check_range, check_rate, check_spikes, run_checks
from ebbline.settings import QualitySettings

from helpers import samples, station

SETTINGS = QualitySettings()


def test_single_spike_is_suspect():
    heights = [1000 + i % 3 for i in range(30)]
    heights[15] = 1400
    checked = check_spikes(samples(heights), station(), SETTINGS)
    assert [i for i, s in enumerate(checked) if s.flag is Flag.SUSPECT] == [15]


def test_run_of_three_is_an_event_and_stays_good():
    heights = [1000 + i % 3 for i in range(30)]
    heights[14:17] = [1300, 1340, 1310]
    checked = check_spikes(samples(heights), station(), SETTINGS)
    assert all(s.flag is Flag.GOOD for s in checked)


def test_flatline_flags_the_whole_run():
    heights = [900, 905] + [910] * 27 + [915]
    checked = check_flatline(samples(heights), SETTINGS)
    assert [s.flag for s in checked[2:29]] == [Flag.BAD] * 27
    assert checked[29].flag is Flag.GOOD


def test_record_surge_is_suspect_and_not_bad():
    checked = check_range(samples([5300, 5900]), station(), SETTINGS)
    assert [s.flag for s in checked] == [Flag.SUSPECT, Flag.BAD]


def test_float_gauge_skips_the_rate_test():
    heights = [1000, 1000, 1200, 1201]
    assert run_checks(samples(heights), station(), SETTINGS)[2].reason != "rate"
    assert check_rate(samples(heights), SETTINGS)[2].reason == "rate"
