"""Whether a Mac held its clocks down while it was timed: asked of libSystem, without starting a program.

macOS tells its thermal pressure to whoever asks for it by name (notify(3), kOSThermalNotificationPressureLevelName).
It is a matter of microseconds, and forks nothing, which a process that uses Metal should not do. What a run records
beside its passes, low power mode for one, is in `hardware/apple_power.py`.
"""

from __future__ import annotations

import ctypes
import platform

from profkit.hardware.macos import parse_pressure

NAME = b"com.apple.system.thermalpressurelevel"


def thermal_pressure() -> str | None:
    """`nominal`, `moderate`, `heavy`, ...; None where the system does not tell, or is no macOS."""
    if platform.system() != "Darwin":
        return None
    try:
        return _asked(ctypes.CDLL(None))
    except (OSError, AttributeError, ctypes.ArgumentError):
        return None


def _asked(library: ctypes.CDLL) -> str | None:
    token, level = ctypes.c_int(), ctypes.c_uint64()
    if library.notify_register_check(ctypes.c_char_p(NAME), ctypes.byref(token)) != 0:
        return None
    try:
        if library.notify_get_state(token, ctypes.byref(level)) != 0:
            return None
    finally:
        library.notify_cancel(token)
    return parse_pressure(f"{NAME.decode()} {level.value}")


def pressed(before: str | None, after: str | None) -> str | None:
    """What is to be said of seconds that were taken between two looks; None where nothing was held down."""
    raised = [level for level in (before, after) if level not in (None, "nominal")]
    if not raised:
        return None
    return f"thermal pressure was {' and '.join(dict.fromkeys(raised))}: the GPU may have been slowed"
