"""Where a tool may be without being on anybody's PATH."""

from __future__ import annotations

import sys
from pathlib import Path

# setup.sh puts what it fetched without root into the environment's own folder; `.venv/bin/profkit` then finds it
# in a shell in which the environment is not active.
BESIDE_PYTHON = Path(sys.executable).parent
