"""What of valgrind's can be read."""

from __future__ import annotations

from profkit.tools.formats import Format
from profkit.tools.valgrind import cachegrind_file, callgrind_file

FORMATS = (
    Format("callgrind", "valgrind", "callgrind", callgrind_file.looks_like, callgrind_file.read_callgrind),
    Format(
        "cachegrind", "valgrind", "cachegrind", cachegrind_file.looks_like, cachegrind_file.read_cachegrind
    ),
)
