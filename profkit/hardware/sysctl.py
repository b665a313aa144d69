"""Values of macOS's sysctl: asked in this process, else of the program of that name. Nothing of it needs root."""

from __future__ import annotations

import ctypes
import platform

from profkit.hardware.asking import told


def text(name: str) -> str | None:
    """The text that `sysctl -n NAME` prints; None where this system has no such name."""
    raw = _raw(name)
    if raw is not None:
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None
    return _told(name)


def number(name: str) -> int | None:
    """The whole number that has this name; None where there is none."""
    raw = _raw(name)
    if raw is not None:
        return int.from_bytes(raw, "little", signed=True) if len(raw) in (4, 8) else None
    words = _told(name)
    try:
        return int(words) if words else None
    except ValueError:
        return None


def _told(name: str) -> str | None:
    return told("sysctl", "-n", name) if platform.system() == "Darwin" and not _has_function() else None


def _has_function() -> bool:
    try:
        return hasattr(ctypes.CDLL(None), "sysctlbyname")
    except (OSError, TypeError):
        return False


def _raw(name: str) -> bytes | None:
    """The bytes of one value, None where this system has no such name, or no sysctlbyname."""
    try:
        library = ctypes.CDLL(None)
        length = ctypes.c_size_t(0)
        if library.sysctlbyname(name.encode(), None, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        buffer = ctypes.create_string_buffer(length.value)
        if library.sysctlbyname(name.encode(), buffer, ctypes.byref(length), None, ctypes.c_size_t(0)) != 0:
            return None
        return buffer.raw[: length.value]
    except (OSError, AttributeError, ValueError, TypeError):
        return None
