"""Which events are counted together on a Mac, and how Instruments is given them."""

from __future__ import annotations

import base64
import itertools
import json
import plistlib

import pytest

from profkit.profilers.xctrace.cpu_events import (
    ChipEvents,
    CounterEvent,
    counter_options,
    event_archive,
    fits_counters,
    plan_groups,
    read_events,
)

KIND = (0x0100000C, 2, 0x1B588BB3)
FILE = "cpu_100000c_2_1b588bb3.plist"


def kpep(folder, events, **cpu):
    """A table of events as macOS keeps it."""
    content = {"name": "a14", "system": {"cpu": {"config_counters": 0x3FC, "events": events, **cpu}}}
    (folder / FILE).write_bytes(plistlib.dumps(content))


def names(groups):
    return [[event.name for event in group] for group in groups]


def test_macos_own_table_is_read_by_the_numbers_of_the_core(tmp_path):
    kpep(
        tmp_path,
        {
            "FIXED_CYCLES": {"fixed_counter": 0, "fallback": "CORE_ACTIVE_CYCLE"},
            "INST_ALL": {"number": 140, "counters_mask": 0x80},
            "L1D_TLB_MISS": {"number": 161},
        },
        aliases={"Cycles": "FIXED_CYCLES"},
    )
    found = read_events("apple", *KIND, folder=tmp_path)
    assert found.from_macos
    assert found.events == (
        CounterEvent("FIXED_CYCLES", 0b01, "Cycles"),
        CounterEvent("INST_ALL", 0x80),
        CounterEvent("L1D_TLB_MISS", 0x3FC),
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"<plist", b"bplist00rubbish", plistlib.dumps([1]), plistlib.dumps({"system": {"cpu": 4}})],
)
def test_a_table_that_is_none_gives_what_all_apple_silicon_has(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    found = read_events("apple", *KIND, folder=tmp_path)
    assert not found.from_macos
    assert found == read_events("apple", None, None, None)


def test_the_events_of_an_unknown_intel_mac_are_not_guessed(tmp_path):
    assert read_events("intel", 7, 8, 0x10F817CF, tmp_path) is None


def test_every_group_has_cycles_and_instructions_and_fits_on_the_counters():
    groups = plan_groups(read_events("apple", None, None, None))
    assert len(groups) == 2  # branches and cache misses both need the same three counters
    for group in groups:
        assert {"FIXED_CYCLES", "FIXED_INSTRUCTIONS"} <= {event.name for event in group}
        assert fits_counters(group)


def test_the_events_of_one_ratio_are_counted_together():
    groups = [set(group) for group in names(plan_groups(read_events("apple", None, None, None)))]
    for pair in (
        {"INST_BRANCH", "BRANCH_MISPRED_NONSPEC"},
        {"INST_LDST", "L1D_CACHE_MISS_LD_NONSPEC", "L1D_CACHE_MISS_ST_NONSPEC"},
        {"L1D_TLB_MISS", "L1D_TLB_ACCESS"},
    ):
        assert any(pair <= group for group in groups), pair


def test_who_has_fewest_counters_to_sit_on_stands_first():
    (group, _) = plan_groups(read_events("apple", None, None, None))
    assert [e.name for e in group][:2] == ["FIXED_CYCLES", "FIXED_INSTRUCTIONS"]
    counts = [event.mask.bit_count() for event in group]
    assert counts == sorted(counts)
    taken = set()  # as Instruments gives them out: the first that is free
    for event in group:
        taken.add(next(c for c in range(32) if event.mask >> c & 1 and c not in taken))
    assert len(taken) == len(group)


def test_two_events_for_one_counter_are_counted_in_two_runs():
    events = ChipEvents(
        "apple",
        (
            CounterEvent("FIXED_CYCLES", 1),
            CounterEvent("FIXED_INSTRUCTIONS", 2),
            CounterEvent("INST_SIMD_ALU", 0x80),
            CounterEvent("INST_SIMD_ALU_VEC", 0x80),
        ),
        True,
    )
    assert names(plan_groups(events)) == [
        ["FIXED_CYCLES", "FIXED_INSTRUCTIONS", "INST_SIMD_ALU_VEC"],
        ["FIXED_CYCLES", "FIXED_INSTRUCTIONS", "INST_SIMD_ALU"],
    ]


def test_an_intel_mac_counts_loads_by_where_they_hit():
    loads = ("L1_HIT", "L1_MISS", "L2_HIT", "L2_MISS", "L3_HIT", "L3_MISS")
    events = ChipEvents(
        "intel",
        (
            CounterEvent("INST_ALL", 1),
            CounterEvent("CORE_ACTIVE_CYCLE", 2),
            *(CounterEvent(f"MEM_LOAD_RETIRED.{name}", 0b1111 << 3) for name in loads),
            CounterEvent("BR_INST_RETIRED.ALL_BRANCHES", 0b1111 << 3),
            CounterEvent("BR_MISP_RETIRED.ALL_BRANCHES", 0b1111 << 3),
        ),
        True,
    )
    groups = names(plan_groups(events))
    assert [len(group) for group in groups] == [6, 6]
    assert {"MEM_LOAD_RETIRED.L3_MISS", "BR_MISP_RETIRED.ALL_BRANCHES"} <= set(itertools.chain(*groups))


def test_without_events_of_any_formula_the_anchors_alone_are_counted():
    assert names(plan_groups(ChipEvents("apple", (CounterEvent("FIXED_CYCLES", 1),), True))) == [
        ["FIXED_CYCLES"]
    ]
    assert plan_groups(ChipEvents("apple", (), True)) == ()


@pytest.mark.parametrize(
    ("masks", "fit"), [((1, 2), True), ((1, 1), False), ((3, 1, 2), False), ((7, 1, 2), True), ((0,), False)]
)
def test_each_event_needs_a_counter_of_its_own(masks, fit):
    assert fits_counters([CounterEvent(f"E{n}", mask) for n, mask in enumerate(masks)]) is fit


SHOWN = {
    "CPU Counters": {
        "allEventsAndFormulas": [],
        "configurationType": {"guided": {}},
        "countingLevel": "EL0",
        "sampleByTime": False,
        "pmiThreshold": 1_000_000,
    },
    "Hangs": {"hangsThreshold": 250},
}
EVENTS = (CounterEvent("FIXED_CYCLES", 1, "Cycles"), CounterEvent("INST_BRANCH", 0xE0))


def archived(text):
    objects = plistlib.loads(base64.b64decode(text))["$objects"]
    event = objects[1]
    return {
        "class": objects[event["$class"].data]["$classname"],
        "mnemonic": objects[event["_mnemonic"].data],
        "shown": objects[event["_aliasOrMnemonic"].data],
    }


def test_the_document_stays_whole_and_counts_a_list_at_each_timer_sample():
    options = json.loads(counter_options(json.dumps(SHOWN), EVENTS))
    assert options["Hangs"] == SHOWN["Hangs"]
    counters = options["CPU Counters"]
    assert counters["pmiThreshold"] == 1_000_000
    assert counters["configurationType"] == {"manual": {}}
    assert counters["sampleByTime"] is True
    assert [archived(text)["mnemonic"] for text in counters["allEventsAndFormulas"]] == [
        "FIXED_CYCLES",
        "INST_BRANCH",
    ]


def test_an_event_is_archived_as_instruments_stores_it():
    assert archived(event_archive(EVENTS[0])) == {
        "class": "XRCountersSetupEventOrFormula",
        "mnemonic": "FIXED_CYCLES",
        "shown": "Cycles",
    }


def test_lines_around_the_document_do_not_matter():
    assert counter_options(f"Recording options:\n{json.dumps(SHOWN, indent=2)}\n\n", EVENTS) is not None


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Unrecognized option: --show-recording-options",
        "{",
        "[1]",
        "{}",
        '{"CPU Counters": []}',
        '{"CPU Counters": {"countingLevel": "EL0"}}',
        "{" * 100_000 + "}" * 100_000,
    ],
)
def test_what_is_no_such_document_is_not_changed(shown):
    assert counter_options(shown, EVENTS) is None
