"""What became worse as SARIF 2.1.0 (OASIS, 2020), for the code scanning of GitHub and what else reads it.

A rule is a metric, a result one regression at the changed line. What is the same, better or not decided is no result:
code scanning closes what is no longer there, and takes everything else for a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from profkit import __version__
from profkit.analysis.metrics import all_metrics
from profkit.core.codec import json_text
from profkit.core.types import Json
from profkit.reporting.forges.regressions import NO_METRIC, FileLine, Regression

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
CATEGORY = "profkit/compare/"  # what GitHub keeps the alerts of one tool apart by
_MOST_RELATED = 10


def render(found: Sequence[Regression]) -> str:
    """The whole document; without any result where nothing became worse."""
    rules = list(dict.fromkeys(one.metric for one in found))
    results: list[Json] = [_result(one, rules.index(one.metric)) for one in found]
    driver: dict[str, Json] = {
        "name": "profkit",
        "version": __version__,
        "rules": [_rule(metric) for metric in rules],
    }
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "automationDetails": {"id": CATEGORY},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(metric: str) -> dict[str, Json]:
    known = next((info for info in all_metrics() if info.name == metric), None)
    title = known.title if known is not None else "Worse than before"
    meaning = known.meaning if known is not None and metric != NO_METRIC else title
    return {
        "id": metric,
        "shortDescription": {"text": f"{title} is worse"},
        "fullDescription": {"text": f"{title} is worse than in the baseline. {meaning}"},
        "help": {"text": "The report of the comparison has the interval, the pairs of runs and the causes."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance"]},
    }


def _result(one: Regression, rule: int) -> dict[str, Json]:
    result: dict[str, Json] = {
        "ruleId": one.metric,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": _no_link(one.message)},
        "locations": [_location(place) for place in one.places[:1]],
        "partialFingerprints": {"profkitRegression/v1": one.fingerprint},
    }
    related: list[Json] = [
        {**_location(place), "id": number, "message": {"text": _no_link(place.text)}}
        for number, place in enumerate(one.places[1:_MOST_RELATED], 1)
    ]
    return {**result, "relatedLocations": related} if related else result


def _no_link(text: str) -> str:
    """A message in which nothing is a link: `[words](address)` would be one (section 3.11.6)."""
    return text.replace("](", "] (")


def _location(place: FileLine) -> dict[str, Json]:
    uri = quote(place.path, errors="replace")
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}},
    }
