"""Makes a small extract of a real export: some rows of it, with ids and refs as xctrace writes them.

    python -m tests.xctrace_extract EXPORT.xml OUTPUT.xml --from 866 --to 900 [--most 80]      milliseconds of the trace

What the rows refer to is written out where it comes first, so the extract reads like a short table of xctrace's own.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from xml.etree import ElementTree

Element = ElementTree.Element


def resolved(root: Element) -> None:
    """Every reference replaced by what it refers to."""
    known: dict[str, Element] = {}

    def walk(parent: Element) -> None:
        for index, child in enumerate(list(parent)):
            if (ref := child.get("ref")) is not None:
                parent[index] = copy.deepcopy(known[ref])
            else:
                walk(child)
                if (name := child.get("id")) is not None:
                    known[name] = child

    for row in root.iter("row"):
        walk(row)


def referring(rows: list[Element]) -> None:
    """Equal elements become references to the first of them, numbered as they come."""
    numbers: dict[bytes, str] = {}

    def key(element: Element) -> bytes:
        bare = copy.deepcopy(element)
        for one in bare.iter():
            one.attrib.pop("id", None)
            one.tail = None
        return ElementTree.tostring(bare)

    def walk(parent: Element) -> None:
        for index, child in enumerate(list(parent)):
            if child.tag == "sentinel":
                continue
            same = key(child)
            if same in numbers:
                parent[index] = Element(child.tag, {"ref": numbers[same]})
                continue
            number = numbers[same] = str(len(numbers) + 1)
            child.attrib = {"id": number, **{k: v for k, v in child.attrib.items() if k != "id"}}
            walk(child)

    for row in rows:
        walk(row)


def extract(source: Path, output: Path, begin: int, end: int, most: int) -> int:
    """Write the rows of `source` whose first column (ns) lies between `begin` and `end`; how many there were."""
    root = ElementTree.parse(source).getroot()
    resolved(root)
    kept = 0
    for node in root.iter("node"):
        rows = node.findall("row")
        inside = [row for row in rows if begin <= int(row[0].text or 0) <= end][:most]
        for row in rows:
            node.remove(row)
        referring(inside)
        for row in inside:
            row.tail = "\n"
        node.extend(inside)
        kept += len(inside)
    text = ElementTree.tostring(root, encoding="unicode")
    output.write_text(f'<?xml version="1.0"?>\n{text}\n', encoding="utf-8")
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--from", dest="begin", type=float, default=0.0)
    parser.add_argument("--to", dest="end", type=float, default=1e9)
    parser.add_argument("--most", type=int, default=80)
    told = parser.parse_args()
    print(extract(told.source, told.output, int(told.begin * 1e6), int(told.end * 1e6), told.most), "rows")
