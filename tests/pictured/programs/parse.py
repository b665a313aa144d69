"""Tables of text are cut into rows and fields, and summed."""

import profkit


def split(text: str) -> list[list[str]]:
    rows = []
    for line in text.splitlines():
        rows.append([field.strip() for field in line.split(",")])
    return rows


def total(rows: list[list[str]]) -> int:
    return sum(int(field) for row in rows for field in row)


TEXT = "\n".join(",".join(f" {row * column % 97} " for column in range(12)) for row in range(400))
profkit.benchmark(lambda: total(split(TEXT)), name="parse")
