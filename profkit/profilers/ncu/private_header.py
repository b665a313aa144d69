"""The header of a block of an .ncu-rep written anew, without host, process, command line, folder and environment.

What each field becomes is a table by field numbers (Nsight Compute 2025.3, extras/FileFormat/*.proto).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from profkit.profilers.ncu.facts import split_command
from profkit.profilers.ncu.wire import LENGTH, VARINT, fields
from profkit.profilers.private_forms import plain_release
from profkit.profilers.redact import (
    ADDRESS,
    COMMAND,
    DEVICE,
    ENVIRONMENT,
    FOLDER,
    HOST,
    OTHER,
    PROCESS,
    Redactor,
)

# What becomes of one length-delimited field: None drops it, a function gives its new bytes.
_Change = Callable[[bytes, Redactor], "bytes | None"]
Rules = dict[int, "_Change | Rules"]


def rewritten(message: bytes, rules: Rules, redactor: Redactor) -> bytes:
    """The message with its length-delimited fields changed by `rules`; one that they do not name is dropped.

    Numbers stay. So no text of a later version of the format comes through unseen.
    """
    written = bytearray()
    for number, wire, a, b in fields(message, 0, len(message)):
        if wire == VARINT:
            written += _varint(number << 3 | VARINT) + _varint(a)
        elif wire != LENGTH:
            written += _varint(number << 3 | wire) + message[a:b]
        else:
            rule = rules.get(number, _unknown)
            value = message[a:b]
            changed = rewritten(value, rule, redactor) if isinstance(rule, dict) else rule(value, redactor)
            if changed is not None:
                written += _varint(number << 3 | LENGTH) + _varint(len(changed)) + changed
    return bytes(written)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _keep(value: bytes, _: Redactor) -> bytes:
    return value


def _release(value: bytes, _: Redactor) -> bytes:
    return plain_release(value.decode("utf-8", "replace")).encode()


def _redacted(value: bytes, redactor: Redactor) -> bytes:
    return redactor.text(value.decode("utf-8", "replace")).encode()


def _gone(kind: str) -> _Change:
    def drop(value: bytes, redactor: Redactor) -> None:
        redactor.note(kind, int(bool(value)))

    return drop


def _instead(kind: str, words: str) -> _Change:
    def replace(value: bytes, redactor: Redactor) -> bytes:
        redactor.note(kind, int(bool(value) and value != words.encode()), words)
        return words.encode() if value else value

    return replace


def _unknown(value: bytes, redactor: Redactor) -> None:
    redactor.note(OTHER, int(bool(value)))


def _environment(value: bytes, redactor: Redactor) -> None:
    redactor.note(
        ENVIRONMENT, redactor.learn_environment(value.decode("utf-8", "replace")) or int(bool(value))
    )


# Options of ncu that decide what may be compared, or what is missing from a report; all others go.
_TOLD = {
    "--clock-control", "--cache-control", "--replay-mode", "--set", "--section", "--metrics", "--launch-skip",
    "--launch-count", "--launch-skip-before-match", "-s", "-c", "--filter-mode", "--target-processes", "--nvtx",
    "--nvtx-include", "--nvtx-exclude", "--kernel-name", "-k", "--kernel-name-base", "--kernel-id", "--range-filter",
    "--profile-from-start", "--import-source", "--graph-profiling", "--app-replay-match", "--app-replay-mode",
    "--app-replay-buffer", "--range-replay-options", "--pm-sampling-interval", "--pm-sampling-buffer-size",
    "--pm-sampling-max-passes", "--sampling-interval", "--sampling-max-passes", "--sampling-buffer-size",
    "--disable-profiler-start-stop", "--apply-rules", "--warp-sampling-interval", "--disable-extra-suffixes",
    "--pipeline-boost-state",
}  # fmt: skip
_VALUE = re.compile(r"[\w.,:%*+()\[\]^$|?@&<> -][\w.,:%*+()\[\]^$|?@&<>/ -]{0,65535}")


def _command_line(value: bytes, redactor: Redactor) -> bytes:
    """ncu's own options without the workload, and without what names files."""
    line = value.decode("utf-8", "replace")
    options, _ = split_command(line)
    kept = ["ncu"] if line.strip() else []
    for name, told in options:
        if name in _TOLD and _VALUE.fullmatch(told or "-"):
            kept += [name, *([shlex.quote(redactor.text(told))] if told else [])]
    redactor.note(COMMAND, int(" ".join(kept) != line.strip()), " ".join(kept[:3]))
    return " ".join(kept).encode()


def _property(value: bytes, redactor: Redactor) -> bytes:
    """A device property: its key and its value."""
    texts = {number: value[a:b] for number, wire, a, b in fields(value, 0, len(value)) if wire == LENGTH}
    if re.search(rb"uuid|serial|guid|luid|mac", texts.get(1, b""), re.IGNORECASE) and texts.get(2, b"").strip(
        b"0-"
    ):
        redactor.note(DEVICE)
        return rewritten(value, {1: _keep, 2: lambda text, _: re.sub(rb"[0-9a-zA-Z]", b"0", text)}, redactor)
    return rewritten(value, {1: _keep, 2: _redacted}, redactor)


_SYSTEM: Rules = {1: _keep, 2: _release, 3: _keep, 4: _keep, 5: _instead(HOST, "host"), 7: _gone(ADDRESS)}
_EXECUTABLE: Rules = {
    1: _instead(PROCESS, "program"),
    2: _gone(FOLDER),
    3: _gone(COMMAND),
    4: _environment,
}
_SESSION: Rules = {
    3: _SYSTEM,
    4: _SYSTEM,
    5: {1: _property},
    6: _keep,  # attributes of the devices, as numbers and names of chips
    7: _gone(OTHER),
    8: _keep,
    9: _EXECUTABLE,
    10: _keep,
    11: _command_line,
}
HEADER: Rules = {3: _SESSION, 4: _keep, 6: {2: _instead(HOST, "host"), 3: _instead(PROCESS, "process")}}
