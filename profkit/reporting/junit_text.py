"""JUnit's XML, as Jenkins, GitLab and GitHub's test reporters read it: suites of cases in, one text out.

Two published schemas differ; what is written here is valid by both: Ant's (windyroad/JUnit-Schema, JUnit.xsd), which
fixes the order of elements and demands host, time and time stamp, and Jenkins' (xunit-plugin, junit-10.xsd).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

from profkit.core.formatting import shortened
from profkit.reporting.plain_text import harmless

CaseState = Literal["passed", "failure", "error", "skipped"]
LONGEST_NAME = 250  # characters; readers make file names and columns of them
LONGEST_MESSAGE = 2000
_UNKNOWN_TIME = "1970-01-01T00:00:00"  # where a report does not tell: the schema demands a time stamp
# U+FFFE and U+FFFF are no characters of XML 1.0 (section 2.2); `harmless` has replaced the rest of what is not.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class Case:
    """One test case. `message` says why it did not pass, `detail` is the longer text below it."""

    group: str  # the classname: readers make a tree of its dots
    name: str
    state: CaseState = "passed"
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    kind: str = ""  # the type of a failure or an error: a short fixed word


@dataclass(frozen=True)
class Suite:
    """One test suite. `started` is ISO 8601; `properties` are facts that are shown beside it."""

    name: str
    cases: Sequence[Case]
    started: str = ""
    seconds: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    package: str = "profkit"


def junit_text(suites: Sequence[Suite]) -> str:
    """The suites as one XML document with a final newline."""
    from xml.etree import ElementTree  # here: 10 ms that only this report pays

    root = ElementTree.Element("testsuites")
    for number, suite in enumerate(suites):
        states = [case.state for case in suite.cases]
        node = ElementTree.SubElement(
            root,
            "testsuite",
            {
                "id": str(number),
                "package": suite.package,
                "name": _name(suite.name),
                "timestamp": _stamp(suite.started),
                "hostname": "localhost",  # a report names no host; this is what the schema asks for then
                "tests": str(len(states)),
                "failures": str(states.count("failure")),
                "errors": str(states.count("error")),
                "skipped": str(states.count("skipped")),
                "time": _seconds(suite.seconds),
            },
        )
        properties = ElementTree.SubElement(node, "properties")
        for name, value in suite.properties.items():
            told = {"name": _name(name), "value": _line(value, LONGEST_MESSAGE)}
            ElementTree.SubElement(properties, "property", told)
        for case in suite.cases:
            head = {"classname": _name(case.group), "name": _name(case.name), "time": _seconds(case.seconds)}
            inner = ElementTree.SubElement(node, "testcase", head)
            if case.state != "passed":
                ElementTree.SubElement(inner, case.state, _why(case)).text = _lines(
                    case.detail or case.message
                )
        ElementTree.SubElement(node, "system-out").text = _lines(suite.output)
        ElementTree.SubElement(node, "system-err").text = ""
    ElementTree.indent(root, " ")
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _why(case: Case) -> dict[str, str]:
    """Message and type; what is skipped has no type (Ant's schema), so its kind stands in the message."""
    if case.state == "skipped":
        told = ": ".join(part for part in (case.kind, case.message) if part)
        return {"message": _line(told, LONGEST_MESSAGE)}
    return {"message": _line(case.message, LONGEST_MESSAGE), "type": _name(case.kind or case.state)}


def _name(text: str) -> str:
    """A token that is never empty: the schema wants one character at least, and no blanks at its ends."""
    return " ".join(_line(text, LONGEST_NAME).split()) or "-"


def _line(text: str, longest: int) -> str:
    return shortened(_NO_XML.sub("�", harmless(text)), longest)


def _lines(text: str) -> str:
    return "\n".join(_kept(text))


def _kept(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield _line(line, LONGEST_MESSAGE)


def _seconds(value: float) -> str:
    """A decimal without exponent or sign."""
    return f"{max(0.0, value):.3f}"


def _stamp(started: str) -> str:
    """UTC without its zone, which Ant's schema does not allow."""
    try:
        when = datetime.fromisoformat(started.replace("Z", "+00:00"))
    except ValueError:
        return _UNKNOWN_TIME
    when = when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)
    try:
        return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    except (OverflowError, ValueError):
        return _UNKNOWN_TIME
