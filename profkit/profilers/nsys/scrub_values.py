"""What becomes of a text in nsys' SQLite export, by its table and its column, by the name beside it, or by its form."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

from profkit.profilers.redact import (
    COMMAND,
    DEVICE,
    ENVIRONMENT,
    HOST,
    MESSAGE,
    OTHER,
    PATH,
    USER,
    Redactor,
    environment_variables,
    plain_release,
)

# Columns whose text stays, less what is private by its form: by table and by name, and no other. What a column that is
# allowed says is nsys' own (`_WORDS_OF_NSYS`, a date, a place on the bus), or was chosen by who wrote the program.
_ALLOWED: tuple[tuple[str, str, re.Pattern[str] | None], ...] = (
    (r"ENUM_\w+", r"name|label", re.compile(r"[\w .,:;()/&+-]{0,96}")),
    (r"NVTX_\w+", r"text|jsonText|name|binaryData", None),
    (r"TARGET_INFO_GPU", r"name|chipName", re.compile(r"[\w .,:;()/+-]{0,96}")),
    (r"TARGET_INFO_GPU", r"busLocation", re.compile(r"[0-9a-fA-F:.]{0,20}")),
    (
        r"TARGET_INFO_(?:GPU|NETWORK)_METRICS",
        r"\w*[nN]ame|unit",
        re.compile(r"[\w .,:;()\[\]{}/&+%<>=*-]{0,160}"),
    ),
    (r"TARGET_INFO_SESSION_START_TIME", r"utcTime|localTime", re.compile(r"[\d:.TZ +-]{0,40}")),
    (r"CUPTI_\w+|CUDA_\w+", r"name|shortName|demangledName|mangledName", None),
    (r"(?:CUDNN|CUBLAS|CUSPARSE|OSRT|MPI|UCX|NCCL|OPENACC|OPENMP|OPENSHMEM)_\w+", r"name|text|label", None),
    (r"TARGET_INFO_SYSTEM_ENV", r"name", re.compile(r"[\w. :-]{0,64}")),
    (r"META_DATA_\w+|EXPORT_META_DATA", r"name", re.compile(r"[\w:. -]{0,96}")),
)
_IDENTITY = re.compile(r"guid|serial|uuid|^mac|_mac", re.IGNORECASE)  # of a device


def allowed_form(table: str, column: str) -> tuple[bool, re.Pattern[str] | None]:
    """Whether a text of this column may stay, and the form that it has then."""
    for tables, columns, form in _ALLOWED:
        if re.fullmatch(tables, table) and re.fullmatch(columns, column):
            return True, form
    return False, None


_HARMLESS_ENV = re.compile(
    r"Cpu(?!set)|Supports|Has[A-Z]|Is[A-Z]|NvDriverVersion|CudaDriverVersion|OsDescription|OsVersion|Supported|"
    r"HardwarePlatform|SoftwarePlatform|SoftwareReleaseVersion|KernelVersion|ExportLevel|LinuxParanoidLevel|"
    r"OfedDriverVersion|dptiSupportsHES|GpuInfo|LinuxPerfInfo|EventLibSourcesInfo|SocInfo$|TotalMemory"
)
_CAPTURE_PRIVATE = re.compile(
    r"(?:^|[_:])(?:COMMAND|ARGUMENTS?|ARGS?|ARGV|ENV|ENVIRONMENT|\w*DIR|DIRECTORY|USER|HOST|HOSTNAME|PATH|FILE|FILENAME|"
    r"UUID|SESSION_ID|DISPLAY_NAME|PACKAGE|SERIAL|ADDRESS|PASSWORD|EXECUTABLE|TOKEN)(?:[_:]|\d|$)"
)
_PLAIN = re.compile(r"(?:true|false|-?\d{1,12}(?:\.\d{1,6})?)?")
_WORD = re.compile(r"[A-Z][A-Za-z]{2,24}")  # Immediate, LaunchAnother
# What nsys itself reports; another sentence may quote anything.
_MESSAGE = re.compile(
    r"(?:Number of|Not all|Profiling |Common injection|CUDA injection|NVTX injection|(?:PyTorch )?\w+ injection|"
    r"Buffers holding|Loaded CUPTI|Enabling trace|Process was launched|CUDA profiling|CUPTI|Failed to|No |Unable to|"
    r"Unrecognized|CUDA |GPU |The |Some |An error|Event |Installed |Dropped |Subscribe |Device |Driver |Hardware )"
)


def as_text(value: object) -> str:
    """A value of a column as text; None is empty."""
    return (
        value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    )


def column_scrubber(table: str, column: str, redactor: Redactor) -> Callable[[tuple[object, ...]], object]:
    """What becomes of a text in `column`: it stays only where the column is known to hold none that is private."""
    lower = column.lower()
    allowed, form = allowed_form(table, column)
    if _IDENTITY.search(lower):
        return lambda row: _blank_value(row[0], DEVICE, redactor)
    if lower.endswith("statename"):
        return lambda row: scrub_device(as_text(row[0]), redactor)
    if column == "binaryData":
        return lambda row: _payload(row[0], redactor)
    if allowed:
        return lambda row: _scrub_value(row[0], redactor, form)
    return lambda row: _blank_value(row[0], PATH if "file" in lower or "path" in lower else OTHER, redactor)


def scrub_device(value: str, redactor: Redactor) -> str:
    """How nsys calls the machine: one that was reached over ssh by its name."""
    if not value or re.fullmatch(r"Local(?: \([A-Z]+\))?", value):
        return value
    redactor.note(HOST, 1, "device")
    return "device"


def scrub_property(name: str, value: str, redactor: Redactor) -> str:
    """A property of the machine: harmless ones stay."""
    if not value:
        return value
    if name in ("SoftwareReleaseVersion", "KernelVersion"):
        return plain_release(value)
    if _HARMLESS_ENV.match(name) or value == "{}":
        return redactor.text(value)
    return _drop_value(_kind_of(name), redactor, value)


def scrub_fact(name: str, value: str, redactor: Redactor) -> str:
    """A setting of the capture or the export: switches, numbers and plain words stay."""
    if not value:
        return value
    upper = name.upper()
    if upper.startswith("EXPORT_") and not re.search(r"HOST|USER|_FILE|PATH|DIR", upper):
        return redactor.text(value)
    if _CAPTURE_PRIVATE.search(re.sub(r"^PROCESS_\d+:", "", upper)) or upper.startswith("EXPORT_"):
        if upper.endswith(":COMMAND"):
            redactor.note(COMMAND, int(value != "program"), "program")
            return "program"
        return _drop_value(_kind_of(upper), redactor, value)
    if upper == "DEVICE_ID":
        return scrub_device(value, redactor)
    if _PLAIN.fullmatch(value) or (_WORD.fullmatch(value) and "NAME" not in upper):
        return value
    return _drop_value(OTHER, redactor, value)


def _kind_of(name: str) -> str:
    upper = name.upper()
    for word, kind in (
        ("ENV", ENVIRONMENT),
        ("HOST", HOST),
        ("DISPLAY_NAME", HOST),
        ("USER", USER),
        ("COMMAND", COMMAND),
        ("ARG", COMMAND),
        ("UUID", DEVICE),
        ("UID", DEVICE),
        ("NIC", DEVICE),
        ("DIR", PATH),
        ("PATH", PATH),
        ("FILE", PATH),
    ):
        if word in upper:
            return kind
    return OTHER


def scrub_message(text: str, redactor: Redactor) -> str:
    """What nsys had to say: a sentence that is known as its own stays, without paths."""
    if _MESSAGE.match(text):
        return redactor.text(text)
    redactor.note(MESSAGE, int(bool(text)), "(message removed)")
    return "(message removed)" if text else text


def _blank_value(value: object, kind: str, redactor: Redactor) -> object:
    if not value or (kind is DEVICE and not as_text(value).strip("0-")):
        return value
    redactor.note(kind)
    return re.sub(r"[0-9a-zA-Z]", "0", as_text(value)) if kind is DEVICE else ""


def _payload(value: object, redactor: Redactor) -> object:
    """What a library attached to its NVTX range: numbers may stay, text in it may be anything."""
    raw = value if isinstance(value, bytes) else as_text(value).encode()
    with contextlib.suppress(ValueError):
        raw = bytes.fromhex(raw.decode("ascii"))
    if re.search(rb"[\x20-\x7e]{6,}", raw) is None:
        return value
    redactor.note(OTHER)
    return None


def _scrub_value(value: object, redactor: Redactor, form: re.Pattern[str] | None) -> object:
    if form is not None and form.fullmatch(as_text(value)) is None:
        redactor.note(OTHER)
        return ""
    if isinstance(value, bytes):
        return value if redactor.text(value.decode("latin-1")) == value.decode("latin-1") else b""
    return redactor.text(str(value))


def _drop_value(kind: str, redactor: Redactor, value: str) -> str:
    variables_in_it = sum(1 for _ in environment_variables(value)) if kind is ENVIRONMENT else 1
    redactor.note(kind, max(1, variables_in_it))
    return ""
