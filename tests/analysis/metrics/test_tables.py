from pathlib import Path

import pytest

import profkit.analysis.metrics
from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.metrics.formulas import formula_table
from profkit.core.tables import load_yaml

CHIPS = [("perf", chip) for chip in (None, "intel", "amd", "arm", "generic")] + [("valgrind", None)]


@pytest.mark.parametrize(("tool", "chip"), [*CHIPS, ("ncu", None)])
def test_every_formula_computes_a_metric_of_the_catalogue(tool, chip):
    table = formula_table(tool, chip)
    for name in (*table.formulas, *table.absent):
        assert metric(name).name == name


@pytest.mark.parametrize(("tool", "chip"), [*CHIPS])
def test_a_percentage_is_scaled_by_a_hundred_and_has_a_denominator(tool, chip):
    for name, ways in formula_table(tool, chip).formulas.items():
        for way in ways:
            if metric(name).unit == "%":
                assert way.scale == 100, (name, way.text)
                assert way.under is not None, (name, way.text)


def test_cache_misses_means_another_level_on_another_vendor_and_nothing_on_an_unknown_chip():
    def levels(chip):
        table = formula_table("perf", chip)
        return [n for n, ways in table.formulas.items() if any("cache-misses" in w.names for w in ways)]

    assert levels("intel") == ["cache.l3.miss_rate", "cache.last.miss_rate"]
    assert levels("amd") == ["cache.l2.miss_rate", "cache.last.miss_rate"]
    assert levels("arm") == levels("generic") == levels(None) == ["cache.last.miss_rate"]


def test_older_and_newer_names_of_one_event_are_one():
    amd = formula_table("perf", "amd")
    assert (
        amd.resolve("l2_pf_hit_l2.all") == amd.resolve("l2_pf_hit_l2") == amd.resolve("l2_pf_hit_l2.l2_hwpf")
    )
    assert formula_table("perf").resolve("CPU-Cycles") == "cycles"


def test_an_unknown_chip_or_tool_has_no_table():
    with pytest.raises(KeyError):
        formula_table("perf", "sparc")
    with pytest.raises(KeyError):
        formula_table("gprof")


def test_the_data_files_hold_no_key_that_nobody_reads():
    folder = Path(profkit.analysis.metrics.__file__).parent
    for row in load_yaml(folder / "catalogue.yaml").values():
        assert row.keys() <= {"title", "unit", "better", "least", "most", "inputs", "meaning"}, row
    for path in (folder / "formulas").glob("*.yaml"):
        content = load_yaml(path)
        if path.name == "metal.yaml":  # names of counters, and no formulas (metrics/metal_counters.py)
            assert content.keys() <= {"counters", "limiters"}
            continue
        known = {"tool", "quality", "aliases", "terms", "metrics", "absent", "optional", "missing"}
        assert content.keys() <= known, path
        for way in (way for ways in content["metrics"].values() for way in ways):
            known = {
                "over",
                "most_of",
                "under",
                "scale",
                "note",
                "chip_only",
                "unless_zero",
                "zero",
                "quality",
            }
            assert way.keys() <= known, way
