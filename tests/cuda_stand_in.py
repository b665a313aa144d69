"""Builds what stands in for NVIDIA's libraries in tests on machines without a GPU. A stand-in shows that calls are made
in the right order and that answers are believed or doubted as they should be; what a real driver answers is shown on a
real one only.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "stand_ins" / "cuda"


@pytest.fixture(scope="session")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libcuda.so.1 and libnvidia-ml.so.1; the test is skipped where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler builds the stand-ins for NVIDIA's libraries")
    folder = tmp_path_factory.mktemp("nvidia")
    for source, name in (("driver.c", "libcuda.so.1"), ("nvml.c", "libnvidia-ml.so.1")):
        argv = [compiler, "-O1", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(folder / name)]
        subprocess.run([*argv, str(SOURCES / source)], check=True, capture_output=True)
    return folder
