"""The test cases of views as JUnit's XML, as Jenkins, GitLab and GitHub's test reporters read it.

Two published schemas differ; what is written here is valid by both: Ant's (windyroad/JUnit-Schema, JUnit.xsd), which
fixes the order of elements and demands host, time and time stamp, and Jenkins' (xunit-plugin, junit-10.xsd).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

from profkit.core.formatting import shorten
from profkit.reporting.forges import Case, CaseList
from profkit.reporting.plain_text import text_for_others
from profkit.reporting.view import Statuses, View, plain_text, walk

LONGEST_NAME = 250  # characters; readers make file names and columns of them
LONGEST_MESSAGE = 2000
_UNKNOWN_TIME = "1970-01-01T00:00:00"  # where a report does not tell: the schema demands a time stamp
# U+FFFE and U+FFFF are no characters of XML 1.0 (section 2.2); `harmless` has replaced the rest of what is not.
_NO_XML = re.compile("[\ufffe\uffff]")


def render(views: Sequence[View], *, strict: bool = False) -> str:
    """Return the test cases of the views as one XML document. What is unknown is skipped, and with `strict` an
    error.
    """
    return _document([suite for view in views for suite in suites_of(view)], "error" if strict else "skipped")


def suites_of(view: View) -> list[CaseList]:
    """Return the view's own suites; of a view without any a case for each status that it shows, or for its verdict."""
    blocks = list(walk(view.blocks))
    suites = [block for block in blocks if isinstance(block, CaseList)]
    if suites:
        return suites
    title = plain_text(view.title)
    cases = [
        Case(title, ", ".join(row.names), row.status.case, plain_text(row.reason), kind=row.word)
        for block in blocks
        if isinstance(block, Statuses)
        for row in block.rows
    ]
    if not cases:
        state = view.label.status.case if view.label is not None else "passed"
        cases = [Case(title, "result", state, " ".join(map(plain_text, view.headline)))]
    return [CaseList(title, tuple(cases))]


def _document(suites: Sequence[CaseList], unknown: str) -> str:
    from xml.etree import ElementTree  # here: 10 ms that only this report pays

    root = ElementTree.Element("testsuites")
    for number, suite in enumerate(suites):
        states = [unknown if case.state == "unknown" else case.state for case in suite.cases]
        node = ElementTree.SubElement(
            root,
            "testsuite",
            {
                "id": str(number),
                "package": "profkit",
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
        for name, value in suite.properties:
            fact = {"name": _name(name), "value": _line(value, LONGEST_MESSAGE)}
            ElementTree.SubElement(properties, "property", fact)
        for case, state in zip(suite.cases, states, strict=True):
            head = {"classname": _name(case.group), "name": _name(case.name), "time": _seconds(case.seconds)}
            inner = ElementTree.SubElement(node, "testcase", head)
            if state != "passed":
                ElementTree.SubElement(inner, state, _why(case, state)).text = _lines(
                    case.detail or case.message
                )
        ElementTree.SubElement(node, "system-out").text = _lines(suite.output)
        ElementTree.SubElement(node, "system-err").text = ""
    ElementTree.indent(root, " ")
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _why(case: Case, state: str) -> dict[str, str]:
    """Return message and type; a skipped case has no type (Ant's schema), so its kind is in the message."""
    if state == "skipped":
        return {"message": _line(": ".join(filter(None, (case.kind, case.message))), LONGEST_MESSAGE)}
    return {"message": _line(case.message, LONGEST_MESSAGE), "type": _name(case.kind or state)}


def _name(text: str) -> str:
    """Return a token that is never empty: the schema wants one character at least, and no blanks at its ends."""
    return " ".join(_line(text, LONGEST_NAME).split()) or "-"


def _line(text: str, longest: int) -> str:
    return shorten(_NO_XML.sub("�", text_for_others(text)), longest)


def _lines(text: str) -> str:
    return "\n".join(_line(line, LONGEST_MESSAGE) for line in text.split("\n"))


def _seconds(value: float) -> str:
    """Return a decimal without exponent or sign."""
    return f"{max(0.0, value):.3f}"


def _stamp(started: str) -> str:
    """Return the time in UTC without its zone, which Ant's schema does not allow."""
    try:
        when = datetime.fromisoformat(started.replace("Z", "+00:00"))
    except ValueError:
        return _UNKNOWN_TIME
    when = when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)
    try:
        return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    except (OverflowError, ValueError):
        return _UNKNOWN_TIME
