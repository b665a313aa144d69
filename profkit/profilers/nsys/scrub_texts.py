"""What becomes of one text in nsys' SQLite export, by the place where it stands."""

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
    OUTPUT,
    PATH,
    PROCESS,
    USER,
    Redactor,
    environment_variables,
    plain_release,
)

# Tables whose strings say what was done on the device or called on the host. CALLCHAINS hold symbols and modules.
OF_EVENTS = re.compile(
    r"CUPTI_|CUDA_|CUDNN_|CUBLAS_|CUSPARSE_|NVTX_|OSRT_|MPI_|UCX_|NCCL_|OPENACC_|OPENMP_|OPENSHMEM_|OPENGL_|VULKAN_|"
    r"DX1|KHR_|NVVIDEO_|NVMEDIA_|PROFILER_OVERHEAD|GPU_|GENERIC_EVENT|NET_|NIC_|SAMPLING_CALLCHAINS|ENUM_|"
    r"TARGET_INFO_(?:GPU|CUDA|NIC|GPU_METRICS)"
)
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
    r"(?:Number of|Not all|Profiling |Common injection|CUDA injection|NVTX injection|\w+ injection|Buffers holding|"
    r"Loaded CUPTI|Enabling trace|Process was launched|CUDA profiling|CUPTI|Failed to|No |Unable to|Unrecognized|"
    r"CUDA |GPU |The |Some |An error|Event |Installed |Dropped |Subscribe |Device |Driver |Hardware )"
)


def as_text(value: object) -> str:
    """A value of a column as text; None is empty."""
    return (
        value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    )


def column_scrubber(column: str, known: bool, redactor: Redactor) -> Callable[[tuple[object, ...]], object]:
    """What becomes of a text in `column`; `known` says that the table is one of events or of devices."""
    lower = column.lower()
    if re.search(r"guid|serial|uuid|^mac|_mac", lower):
        return lambda row: _blank_value(row[0], DEVICE, redactor)
    if lower.endswith("statename"):
        return lambda row: scrub_device(as_text(row[0]), redactor)
    if column == "binaryData":
        return lambda row: _payload(row[0], redactor)
    if known:
        return lambda row: _scrub_value(row[0], redactor)
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


def _scrub_value(value: object, redactor: Redactor) -> object:
    if isinstance(value, bytes):
        return value if redactor.text(value.decode("latin-1")) == value.decode("latin-1") else b""
    return redactor.text(str(value))


def _drop_value(kind: str, redactor: Redactor, value: str) -> str:
    variables_in_it = sum(1 for _ in environment_variables(value)) if kind is ENVIRONMENT else 1
    redactor.note(kind, max(1, variables_in_it))
    return ""


def kind_of_table(name: str) -> str:
    """What the strings are that a table points to."""
    if "Stream" in name:
        return OUTPUT
    return PATH if "FILE" in name.upper() else PROCESS


def kind_of_string(text: str, private: dict[str, str]) -> str:
    """What a string is that no event points to; `private` has the columns of other tables that point to strings."""
    if re.match(r"[A-Za-z_]\w*=", text):
        return ENVIRONMENT
    if text.startswith(("/", "./")):
        return PATH
    return PROCESS if "ThreadNames.nameId" in private and len(text) < 64 else OTHER
