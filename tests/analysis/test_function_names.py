"""Functions as reports call them: none that is private to a library, and C++ by its bare name."""

from __future__ import annotations

import pytest

from profkit.analysis.function_names import called_name, function_name, library_name, name_in_file, place_name
from profkit.core.types import Beneath, Place


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bool is_dominated(std::pair<int, int>) const", "is_dominated"),
        ("d(std::pair<int, int>) const", "d"),
        ("grid::Field::update(std::vector<double, std::allocator<double> >&)", "update"),
        ("std::unordered_map<int, std::string>::find(int const&) const", "find"),
        ("(anonymous namespace)::relax(int)", "relax"),
        ("void sort<int*>(int*, int*) [clone .isra.0]", "sort"),
        ("less::operator()(int, int) const", "less"),
        ("bool operator<(A const&, A const&)", "operator<"),
        ("operator new(unsigned long)", "operator new"),
        ("std::string name[abi:cxx11](int)", "name"),
        ("main::{lambda(int)#1}::operator()(int) const", "main()"),
        ("<alloc::vec::Vec<T> as core::Drop>::drop", "drop"),
        ("work::step::h0123456789abcdef", "step"),
        ("Foo::run(int)", "Foo::run"),  # `run` alone says nothing
        ("train.<locals>.step", "train.step"),
        ("train_step.<locals>.<lambda>", "train_step.<lambda>"),
        ("Net.__init__", "Net.__init__"),  # the program's own
        ("_helper", "_helper"),
        ("<method 'append' of 'list' objects>", "list.append"),
    ],
)
def test_a_function_of_the_program_has_its_bare_name(name: str, shown: str) -> None:
    assert function_name(name) == shown


@pytest.mark.parametrize(
    ("name", "module", "shown"),
    [
        ("Module._call_impl", "torch.nn.modules.module", "Module"),
        ("_wrapped_call_impl", "torch.nn.modules.module", "torch.nn.modules.module"),
        ("_BaseDataLoaderIter.__next__", "torch.utils.data.dataloader", "torch.utils.data.dataloader"),
        ("Index._delegate_method", "pandas.core.indexes.base", "Index"),
        ("_run_python_pjit", "jax._src.pjit", "jax"),
        ("wraps.<locals>.<lambda>", "jax._src.util", "wraps"),
        ("<lambda>", "jax._src.util", "jax"),
        ("ufunc.__call__", "numpy", "ufunc"),
        ("Tensor.item", "torch", "Tensor.item"),
        ("_io.TextIOWrapper.read", "", "TextIOWrapper.read"),
    ],
)
def test_a_private_function_of_a_library_has_the_last_public_name_above_it(
    name: str, module: str, shown: str
) -> None:
    assert library_name(name, module) == shown


def test_a_private_name_is_the_program_s_own_in_its_own_files_and_in_machine_code() -> None:
    installed = "/usr/lib/python3.12/site-packages/torch/cuda/__init__.py"
    assert name_in_file("_lazy_init", installed) == "torch.cuda"
    assert name_in_file("_lazy_init", "/home/me/train.py") == "_lazy_init"
    assert name_in_file("_int_malloc", None, "libc.so.6") == "_int_malloc"
    assert name_in_file("_operator_mul", None, "jax") == "jax"
    assert place_name(Place(function="_fn", file=installed, line=3)) == "torch.cuda"
    assert place_name(Place(function="<module>", file="/home/me/train.py", line=3)) == "top level"
    assert called_name(Beneath("__init__", "torch", public="Linear")) == "Linear"
    assert called_name(Beneath("__init__", "torch")) == "torch"


@pytest.mark.parametrize(
    ("under", "shown"),
    [
        (Beneath("__gt__", "pandas", public="OpsMixin"), "pandas >"),
        (Beneath("__mul__", "sympy", public="Expr"), "sympy *"),
        (Beneath("__iter__", "django", public="QuerySet"), "iter(QuerySet)"),
        (Beneath("__iter__", "django", public="filter"), "filter"),  # as the line writes it
        (Beneath("__len__", "networkx", public="FilterAtlas"), "len(FilterAtlas)"),
        (Beneath("__contains__", "networkx", public="FilterAtlas"), "in FilterAtlas"),
        (Beneath("_wrapped_call_impl", "torch", public="Module"), "Module.forward"),
        (Beneath("__call__", "networkx", public="DiDegreeView"), "DiDegreeView"),
        (Beneath("__getitem__", "numpy", public="NpzFile[]"), "NpzFile[]"),
        (Beneath("__get__", "sqlalchemy", public="InstrumentedAttribute"), "sqlalchemy attribute"),
    ],
)
def test_what_an_operator_or_a_statement_calls_is_named_as_it_is_written(under: Beneath, shown: str) -> None:
    assert called_name(under) == shown


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (
            "void std::__introsort_loop<__gnu_cxx::__normal_iterator<Item*, std::vector<Item> >, long>(X, long)",
            "std::sort",
        ),
        ("std::__unguarded_linear_insert<int*, X>", "std::sort"),
        ("void std::__1::__introsort<std::__1::_ClassicAlgPolicy, X&, int*, false>(int*, int*)", "std::sort"),
        ("void std::__merge_adaptive<int*, long, int*, X>(int*, int*)", "std::stable_sort"),
        ("void std::__adjust_heap<int*, long, int, X>(int*, long)", "std::pop_heap"),
        (
            "std::_Rb_tree<int, std::pair<int const, X>, std::_Select1st<X>, std::less<int> >::_M_insert_unique(X&&)",
            "std::map",
        ),
        ("std::_Rb_tree<int, int, std::_Identity<int>, std::less<int> >::find(int const&)", "std::set::find"),
        (
            "std::_Hashtable<int, std::pair<int const, int>, A>::_M_find_before_node(unsigned long) const",
            "std::unordered_map",
        ),
        ("void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(X, int&&)", "std::vector"),
        ("std::__cxx11::basic_string<char, X>::_M_append(char const*, unsigned long)", "std::string"),
        (
            "std::_Function_handler<double (double), main::{lambda(double)#1}>::_M_invoke(X const&)",
            "std::function",
        ),
        (
            "std::__detail::_Executor<char const*, X, true>::_M_dfs(std::__detail::_Match_mode, long)",
            "std::regex",
        ),
        # What a program or a user of the library calls has its own name.
        ("void std::sort<int*>(int*, int*)", "sort"),
        ("std::vector<int>::push_back(int&&)", "push_back"),
        ("int app::count(std::vector<int>::_M_impl const&)", "count"),
        ("app::_Rb_tree<int>::_M_insert(int)", "_M_insert"),
        ("_ZN3app4work17h0123456789abcdefE", "work"),
        ("_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "main"),
        ("_ZN3foo3barEv", "_ZN3foo3barEv"),
        ("memcmp@plt", "memcmp"),
    ],
)
def test_a_function_that_is_private_to_a_compiled_library_has_the_name_it_is_called_by(
    symbol: str, name: str
) -> None:
    assert function_name(symbol) == name
