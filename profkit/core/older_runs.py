"""Codes for runs that were written before there were any: the texts of those runs tell them.

The only place where code reads a text made for people, and only of an older version of this program.
"""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import MetalTrace, Profile, ProfileKind, Reading, ReasonCode, RunDocument, Verdict

_KINDS: tuple[tuple[str, ProfileKind], ...] = (
    ("own time by function", "own-time"),
    ("cumulative time by function", "cumulative-time"),
    ("calls by function", "calls"),
    ("import time by module", "imports"),
    ("functions by", "counted-functions"),
    (" by Python function", "python-functions"),
    (" by function", "functions"),
    (" by library", "libraries"),
    (" by thread", "threads"),
)
_NOTHING = (
    "the kernel ",
    "the device has no ",
    "no load or store ",
    "no sample met ",
    "nothing was looked up",
)


def add_codes(document: RunDocument) -> RunDocument:
    """The document with the codes that its version did not write."""
    return replace(
        document,
        profiles=tuple(_with_kind(profile) for profile in document.profiles),
        readings=tuple(_with_code(reading) for reading in document.readings),
        verdicts=tuple(_verdict_with_code(verdict) for verdict in document.verdicts),
        metal=_metal_with_codes(document.metal) if document.metal is not None else None,
    )


def _with_kind(profile: Profile) -> Profile:
    if profile.kind is not None:
        return profile
    kind = next((kind for text, kind in _KINDS if text in profile.title), None)
    return replace(profile, kind=kind)


def _with_code(reading: Reading) -> Reading:
    if reading.value is not None or reading.code is not None:
        return reading
    return replace(reading, code=_reason_code(reading.reason or ""))


def _verdict_with_code(verdict: Verdict) -> Verdict:
    if verdict.verdict != "unknown" or verdict.code is not None:
        return verdict
    return replace(verdict, code=_reason_code(verdict.reason))


def _reason_code(reason: str) -> ReasonCode | None:
    if reason.endswith("(the standard depth counts them)"):
        return "deeper"
    if reason.startswith(("not collected", "none of the events")) or reason.endswith("was not collected"):
        return "not-collected"
    if reason.endswith("pass was not asked for"):
        return "not-asked"
    if reason.startswith("it needs "):
        return "input"
    return "nothing-to-measure" if reason.startswith(_NOTHING) else None


def _metal_with_codes(metal: MetalTrace) -> MetalTrace:
    known: dict[str, ReasonCode] = {"the table has no rows": "no-rows"}
    absent = []
    for missing in metal.absent:
        code = known.get(missing.reason)
        if missing.reason.startswith("it was recorded with Counter Set: "):
            code = "no-counter-set"
        absent.append(replace(missing, code=missing.code or code))
    return replace(metal, absent=tuple(absent))
