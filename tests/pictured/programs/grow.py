"""Pages are kept until they are let go of once, and then kept again."""

import time

kept: list[bytearray] = []


def keep(pages: int) -> None:
    for _ in range(pages):
        kept.append(bytearray(1_000_000))
        time.sleep(0.02)


keep(70)
kept.clear()
keep(40)
print(len(kept))
