"""Functions of the C++ standard library by the name that a program calls them by.

A sort, a map or a string is compiled into the program, under names that are private to the library (GNU's or LLVM's):
where nothing was inlined, and without debug information, these are the functions in which samples are.
"""

from __future__ import annotations

import re

_STD = re.compile(r"\bstd::(?:__1::|__cxx11::)?")
# By the bare name of a function: libstdc++'s bits/stl_algo.h, stl_heap.h, stl_algobase.h, and libc++'s __algorithm/.
_ALGORITHMS: tuple[tuple[str, str], ...] = (
    (
        r"__introsort\w*|__(?:final_)?insertion_sort\w*|__unguarded_\w+|__move_median_to_first|__sort\d*\w*",
        "sort",
    ),
    (r"__merge_\w+|__chunk_insertion_sort|__(?:inplace_)?stable_sort\w*|__move_merge\w*", "stable_sort"),
    (r"__adjust_heap|__pop_heap|__sift_down\w*|__floyd_sift_down", "pop_heap"),
    (r"__push_heap|__sift_up", "push_heap"),
    (r"__heap_select|__partial_sort\w*", "partial_sort"),
    (r"__introselect|__nth_element\w*", "nth_element"),
    (r"__copy_\w+|__uninitialized_copy\w*|__do_uninit_copy", "copy"),
    (r"__fill\w*|__do_uninit_fill\w*", "fill"),
)
_CONTAINERS = (("_Rb_tree", "map", "set"), ("__tree", "map", "set"))
_HASHED = (
    ("_Hashtable", "unordered_map", "unordered_set"),
    ("__hash_table", "unordered_map", "unordered_set"),
)
_CLASSES = {
    "_Function_handler": "function",
    "__function": "function",
    "_Sp_counted_base": "shared_ptr",
    "_Sp_counted_ptr_inplace": "shared_ptr",
    "__shared_count": "shared_ptr",
    "__shared_ptr": "shared_ptr",
    "_Executor": "regex",
    "_Vector_base": "vector",
    "_Deque_base": "deque",
    "_List_base": "list",
    "basic_string": "string",
}
_PRIVATE = re.compile(r"_[A-Z_].*")
_MAPPED = re.compile(
    r"\bstd::pair<.*? const, |__value_type<"
)  # in the arguments of a tree or a table: it has values


def standard_name(symbol: str) -> str | None:
    """Return a function of the C++ standard library as a program calls it; None where its own name is public.

    >>> standard_name("void std::__introsort_loop<int*, long, X>(int*, int*, long)")
    'std::sort'
    >>> standard_name("std::_Rb_tree<int, std::pair<int const, int>, X>::_M_insert_unique(int)")
    'std::map'
    >>> standard_name("std::vector<int, X>::_M_realloc_insert(int)"), standard_name("std::sort(int*)")
    ('std::vector', None)
    """
    plain = _without_arguments(symbol)
    start = _STD.search(plain)
    if start is None or "::" in plain[: start.start()]:
        return None
    names = [name for name in plain[start.end() :].split("::") if name]
    for name in names[:-1]:
        for class_, with_values, without in (*_CONTAINERS, *_HASHED):
            if name == class_:
                known = f"std::{with_values if _MAPPED.search(symbol) else without}"
                return known if _PRIVATE.fullmatch(names[-1]) else f"{known}::{names[-1]}"
        if name in _CLASSES and (_PRIVATE.fullmatch(name) or _PRIVATE.fullmatch(names[-1])):
            return f"std::{_CLASSES[name]}"
    if not names or not _PRIVATE.fullmatch(names[-1]):
        return None
    for pattern, public in _ALGORITHMS:
        if re.fullmatch(pattern, names[-1]):
            return f"std::{public}"
    for name in reversed(names):
        if not _PRIVATE.fullmatch(name):
            return f"std::{name}"
    return None


def _without_arguments(symbol: str) -> str:
    """Return a symbol without the arguments of templates, what is in brackets, and what it returns."""
    plain, last = symbol, ""
    while plain != last:
        plain, last = re.sub(r"<[^<>]*>", "", plain), plain
    return plain.partition("(")[0].rpartition(" ")[2]
