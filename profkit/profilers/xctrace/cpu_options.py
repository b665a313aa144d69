"""What `xctrace record --recording-options` is given so that CPU Counters counts a list of events (Xcode 16 and later).

The file must be whole: what `--show-recording-options` prints for the template, changed. An event in it is what the
window of Instruments would store: an archive of Cocoa's NSKeyedArchiver (a property list), in base64. Others found that
form (ApplePerf.jl on an M5; templates saved by Instruments); on an M4 Max somebody saw other forms of a list refused.
"""

from __future__ import annotations

import base64
import json
import plistlib
from collections.abc import Sequence
from typing import Any

from profkit.profilers.xctrace.cpu_events import Event

INSTRUMENT = "CPU Counters"
_CLASS = "XRCountersSetupEventOrFormula"


def counter_options(shown: str, events: Sequence[Event]) -> str | None:
    """The options with `events` counted at each timer sample; None where `shown` is not what this knows how to change.

    `shown` is what `xctrace record --template 'CPU Counters' --show-recording-options` printed, maybe with other lines
    around the document.
    """
    document = _document(shown)
    if document is None or not isinstance(document.get(INSTRUMENT), dict):
        return None
    counters: dict[str, Any] = document[INSTRUMENT]
    if "allEventsAndFormulas" not in counters:
        return None
    counters |= {
        "allEventsAndFormulas": [event_archive(event) for event in events],
        "configurationType": {"manual": {}},
        "sampleByTime": True,
    }
    return json.dumps(document, indent=1)


def _document(shown: str) -> dict[str, Any] | None:
    """The JSON object in what was printed."""
    begin, end = shown.find("{"), shown.rfind("}")
    try:
        document = json.loads(shown[begin : end + 1]) if 0 <= begin < end else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def event_archive(event: Event) -> str:
    """One event as Instruments stores it, in base64."""
    uid = plistlib.UID
    archive = {
        "$archiver": "NSKeyedArchiver",
        "$version": 100000,
        "$top": {"root": uid(1)},
        "$objects": [
            "$null",
            {
                "$class": uid(4),
                "_mnemonic": uid(2),
                "_aliasOrMnemonic": uid(3),
                "_displayName": uid(2),
                "_explanation": uid(0),
                "_formulaText": uid(0),
                "_formulaEvaluator": uid(0),
                "_beingEdited": False,
            },
            event.name,
            event.alias or event.name,
            {"$classname": _CLASS, "$classes": [_CLASS, "NSObject"]},
        ],
    }
    return base64.b64encode(plistlib.dumps(archive, fmt=plistlib.FMT_BINARY)).decode("ascii")
