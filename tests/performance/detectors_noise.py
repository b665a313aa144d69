"""False alarms: the share of series without a change in which a rule sees one.

python -m tests.performance.detectors_noise [--series 300]
"""

from __future__ import annotations

import argparse

from tests.performance.detectors_peers import rules
from tests.regression.change_points.series import noise

KINDS = ("gauss", "t3", "exp", "ar.3", "ar.6", "ar.8")
SLOW = 60  # series are enough for a rule that takes seconds for each
ASKED = {("gauss", 365): 0.01, ("ar.3", 365): 0.05}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=300)
    count = parser.parse_args().series
    print(
        f"share of {count} series without a change that are alarmed ({SLOW} for asv); each around 100, spread 1\n"
    )
    columns = [(kind, nights) for nights in (100, 365) for kind in KINDS]
    print("| rule | " + " | ".join(f"{kind} {nights}" for kind, nights in columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for name, rule in rules().items():
        tried = min(count, SLOW) if "asv" in name else count
        cells = []
        for kind, nights in columns:
            share = (
                sum(bool(rule((100 + noise(kind, nights, seed)).tolist())) for seed in range(tried)) / tried
            )
            limit = ASKED.get((kind, nights), 1.0) if name.startswith("profkit") else 1.0
            cells.append(f"{share:.1%}" + (" (too many)" if share > limit else ""))
        print(f"| {name.strip()} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
