"""Each process of the tests has a temporary folder of its own; pytest's own folders stay where they were."""

from __future__ import annotations

import os
import tempfile

from profkit.core.files.safe_folder import TemporaryFolder

os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
TEMPORARY = TemporaryFolder("tests")
os.environ["TMPDIR"] = tempfile.tempdir = TEMPORARY.name
