"""What was recorded on other machines and lies in this repository tells nothing of them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "cuda"
FILES = sorted(path for path in DATA.rglob("*") if path.is_file())
# By name: variables that every environment has, processes that every Linux has, folders of people.
LEFTOVERS = {
    "environment": rb"(?:LD_LIBRARY_PATH|HOSTNAME|PYTHONPATH|OLDPWD|SSH_\w+|\w+_TOKEN|\w+API_KEY)[=\":]",
    "variables of a container": rb"(?:CONTAINER_NAME|KUBERNETES_\w+|NV_CUDA_\w+|NVARCH)=",
    "processes": rb"kworker/|ksoftirqd|systemd|dockerd|sshd",
    "folders": rb"/(?:root|home|Users|work|mnt|srv|data|workspace|tmp)/[\w.-]{2}",
    "addresses": rb"(?<![\w.])(?:10|172|192)\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.])",
    "devices": rb"(?:GPU-|MIG-)[0-9a-f]{8}-[0-9a-f]{4}-",
    "windows": rb"[A-Z]:\\Users\\",
}


def content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


@pytest.mark.thorough
@pytest.mark.parametrize("what", LEFTOVERS)
def test_nothing_of_the_machine_is_left(what: str) -> None:
    found = {
        path.relative_to(DATA).as_posix(): sorted(set(re.findall(LEFTOVERS[what], content(path))))[:5]
        for path in FILES
        if path.name != "README.md"
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_no_device_tells_its_serial_number() -> None:
    uuid = re.compile(
        rb"(?<![0-9a-f-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f-])"
    )
    found = {path.name: [one for one in uuid.findall(content(path)) if one.strip(b"0-")] for path in FILES}
    assert {name: texts for name, texts in found.items() if texts} == {}
