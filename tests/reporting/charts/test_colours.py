"""The first four colours of charts: told apart by who sees no red, green or blue, and read on the page's paper.

What such an eye sees is simulated after Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
of Color Vision Deficiency", 2009, table 1 at full severity; how far apart two are is their distance in CIELAB (CIE 15).
"""

from __future__ import annotations

import re
from itertools import combinations
from math import dist

import pytest

from tests.conftest import ROOT

EYES = {
    "without red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "without green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "without blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
APART = 12.0  # 2.3 is just noticeable side by side (Mahy et al., 1994); dots and lines stand apart
READ = 4.5  # WCAG 2.2, 1.4.3: letters have these colours
Light = tuple[float, float, float]


def themes() -> list[tuple[str, list[str]]]:
    """The paper and the first four colours of each theme."""
    sheet = (ROOT / "profkit" / "reporting" / "html" / "assets" / "style.css").read_text(encoding="utf-8")
    papers = re.findall(r"--paper:(#\w{6})", sheet)
    colours = re.findall(r"--c1:(#\w{6});--c2:(#\w{6});--c3:(#\w{6});--c4:(#\w{6})", sheet)
    return list(zip(papers, map(list, colours), strict=True))


def light(colour: str) -> Light:
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return linear(red), linear(green), linear(blue)


def linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def lab(seen: Light) -> Light:
    red, green, blue = (max(0.0, each) for each in seen)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0888
    p, q, r = (each ** (1 / 3) if each > 0.008856 else 7.787 * each + 16 / 116 for each in (x, y, z))
    return 116 * q - 16, 500 * (p - q), 200 * (q - r)


def luminance(colour: str) -> float:
    red, green, blue = light(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("eye", EYES)
def test_every_eye_tells_them_apart(eye: str) -> None:
    for _, colours in themes():
        seen = []
        for colour in colours:
            red, green, blue = light(colour)
            one, two, three = (row[0] * red + row[1] * green + row[2] * blue for row in EYES[eye])
            seen.append(lab((one, two, three)))
        assert min(dist(one, other) for one, other in combinations(seen, 2)) >= APART


def test_letters_of_these_colours_are_read_on_their_paper() -> None:
    assert len(themes()) == 3  # light, dark by the system, dark by the button
    for paper, colours in themes():
        for colour in colours:
            low, high = sorted((luminance(paper), luminance(colour)))
            assert (high + 0.05) / (low + 0.05) >= READ
