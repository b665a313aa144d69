import base64
import json
import plistlib

import pytest

from profkit.profilers.xctrace.cpu_events import CounterEvent, counter_options, event_archive

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
