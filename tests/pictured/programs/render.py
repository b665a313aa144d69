"""A table is written as a page."""

import profkit


def page(rows: list[list[int]]) -> str:
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{body}</table>"


ROWS = [[row * column for column in range(12)] for row in range(400)]
profkit.benchmark(lambda: page(ROWS), name="render")
