"""Real caches, fitted to what valgrind can simulate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.types import Cache
from profkit.profilers.valgrind.command import fit_geometry

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("what", "cache", "option"),
    [
        ("Zen 5 L1", Cache(1, 48 * KIB, 12), "49152,12,64"),
        ("Zen 5 L2", Cache(2, MIB, 16), "1048576,16,64"),
        ("Alder Lake L2", Cache(2, 1280 * KIB, 10), "1310720,10,64"),
        ("Ice Lake server L2", Cache(2, 1280 * KIB, 20), "1310720,20,64"),
        ("Apple lines of 128 B", Cache(1, 128 * KIB, 8, line=128), "131072,8,128"),
        ("a cloud machine's 320 MiB", Cache(3, 320 * MIB, 20), "335544320,20,64"),
        ("EPYC's 32 MiB", Cache(3, 32 * MIB, 16), "33554432,16,64"),
        ("36 MiB, 12 ways: other ways, same size", Cache(3, 36 * MIB, 12), "37748736,9,64"),
        ("24.75 MiB, 11 ways: nearly the same", Cache(3, 24 * MIB + 768 * KIB, 11), "25165824,12,64"),
        ("ways unknown", Cache(3, 8 * MIB, 0), "8388608,16,64"),
    ],
)
def test_nearest_legal_geometry(what: str, cache: Cache, option: str) -> None:
    assert fit_geometry(cache).option() == option


def test_a_change_is_said_with_both_geometries() -> None:
    note = fit_geometry(Cache(3, 36 * MIB, 12)).note
    assert note is not None
    assert "36 MiB, 12-way" in note
    assert "36 MiB, 9-way" in note


@given(st.integers(1024, 1 << 30), st.integers(0, 40), st.sampled_from([32, 64, 128]))
def test_any_cache_gets_a_power_of_two_of_sets_and_nearly_its_size(size: int, ways: int, line: int) -> None:
    fitted = fit_geometry(Cache(2, size, ways, line))
    assert fitted.sets * fitted.ways * fitted.line == fitted.size
    assert fitted.sets & (fitted.sets - 1) == 0
    assert 0.66 < fitted.size / size < 1.5
