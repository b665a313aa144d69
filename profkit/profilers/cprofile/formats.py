"""What can be read of Python's own profilers."""

from __future__ import annotations

from profkit.profilers.cprofile.read import looks_like, read_cprofile
from profkit.profilers.formats import Format

FORMATS = (Format("pstats", "cprofile", "a cProfile (pstats) file", looks_like, read_cprofile),)
