"""What source says of members of archives and stores that are read again, and what it does not."""

from __future__ import annotations

import pytest

from tests.analysis.stacks.test_same_calls import found

HELD = "class Year:\n    def __init__(self, path):\n        self.data = np.load(path)\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (HELD + "    def at(self, row):\n        return self.data['t2m'][:, row]  # here",
         [("self.data['t2m']", "key")]),
        ("def at(data, row):\n    return data['t2m'][row]  # here",
         [("data['t2m']", "key 0"), ("data['t2m'][row]", "key 0 1")]),
        ("def sums(data):\n    for n in range(9):\n        print(data['a'][n])  # here", [("data['a']", "key loop")]),
        (
            "def sums(file):\n    for n in range(9):\n        print(file['a'][:][n], file['b'][0:9, ...])  # here",
            [
                ("file['a'][:]", "whole loop"), ("file['b'][0:9, ...]", "whole loop"),
                ("file['a']", "key loop"), ("file['b']", "key loop"),
            ],
        ),
        ("def rate(name):\n    return ARCHIVE.read('rates')[9]  # here", [("ARCHIVE.read('rates')", "call")]),
        (
            "def lines():\n    for n in range(9):\n        with tar.extractfile('a') as member:\n"
            "            print(member.read())  # here",
            [("tar.extractfile('a')", "call loop")],
        ),
        # another member, or another archive, each time
        ("def sums(data):\n    for name in data.files:\n        print(data[name].sum())  # here", []),
        (HELD + "    def at(self):\n        self.turn()\n        return self.data[self.name]  # here\n"
         "    def turn(self):\n        self.name = 'x'\n", []),
        ("def sums(paths):\n    for path in paths:\n        data = np.load(path)\n        print(data['a'])  # here",
         []),
        (HELD + "    def again(self, path):\n        self.data = np.load(path)\n"
         "    def at(self):\n        return self.data['a']  # here", []),
        # it is written, and gives another thing then
        ("def count(store):\n    for n in range(9):\n        store['n'] = store['n'] + 1  # here", []),
        ("def count(store):\n    for n in range(9):\n        store.put('n', n)\n        print(store['n'])  # here", []),
        # an element of a list, a part of which the place depends on the item
        ("def first(rows):\n    for n in range(9):\n        print(rows[0], rows[n:])  # here", []),
        # once
        ("data = np.load('a')\nprint(data['a'])  # here", []),
    ],
)  # fmt: skip
def test_a_member_is_read_again_where_it_and_its_key_stay(body: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(found(body, "# here", "same-member")) == sorted(expected)
