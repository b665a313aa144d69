"""Norms, look-ups by index, losses, and steps of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.work import (
    TRAFFIC,
    NecessaryWork,
    Rule,
    WorkFormula,
    added_bytes,
    index_bytes,
    moved_bytes,
    tensor_like,
    with_in_place,
    words,
)


def _norm(parts: Sequence[int], statistics: int, flop: int) -> Rule:
    """Return a norm over the last dimensions, or over groups: input and parameters read, the result and
    statistics written.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        data, given = call.tensor(0), call.tensors(*parts)
        if data is None:
            return None
        rows = _rows(call, data, given)
        counted = Tensor((statistics * rows,), "fp32" if data.type in ("fp16", "bf16") else data.type)
        moved = moved_bytes(data, tensor_like(data), *given, counted if rows else None)
        return NecessaryWork(float(flop * data.elements), moved, "fma", data.type)

    return rule


def _rows(call: OperationCall, data: Tensor, given: Sequence[Tensor]) -> int:
    """Return of how many parts each has statistics of its own; 0 if that is not known."""
    if call.name == "native_group_norm":
        batch, groups = call.numbers(3), call.numbers(6)
        return batch[0] * groups[0] if batch and groups else 0
    if "batch_norm" in call.name:
        return data.shape[1] if len(data.shape) > 1 and call.flag(5) is not False else 0
    shape = call.numbers(1)
    size = prod(shape) if shape else given[0].elements if given else 0
    return data.elements // size if size else 0


def _norm_backward(
    gradient: int, data: int, parts: Sequence[int], weight: int, mask: int | None, flop: int
) -> Rule:
    """Return the rule of a norm's backward pass.

    It reads the gradient, the input, statistics and weights, and writes the requested gradients.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        above, below, scale = call.tensor(gradient), call.tensor(data), call.tensor(weight)
        if above is None or below is None:
            return None
        wanted = call.flags(mask) if mask is not None else (True, True, True)
        wanted = wanted if wanted or call.has_values else (True, scale is not None, False)
        count = sum(wanted[1:]) if scale is not None else 0
        first = tensor_like(below) if wanted[:1] == (True,) else None
        moved = moved_bytes(above, below, *call.tensors(*parts), scale, first, *([scale] * count))
        return NecessaryWork(float(flop * below.elements), moved, "fma", below.type)

    return rule


# ------------------------------------------------------------ looked up by index


def _looked_up(data: int, index: int) -> Rule:
    """Return the rule of a lookup of one row for each index.

    It is not known how many different rows are read, so rows count once, as written.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        table, places = call.tensor(data), call.tensor(index)
        if table is None or places is None or not table.shape:
            return None
        if call.name == "embedding":
            shape = (*places.shape, *table.shape[1:])
        elif call.name == "gather":
            shape = places.shape
        else:
            dims = call.numbers(1) or (0,)
            at = dims[0] % len(table.shape)
            shape = (*table.shape[:at], places.elements, *table.shape[at + 1 :])
        return NecessaryWork(
            0.0,
            added_bytes(moved_bytes(tensor_like(table, shape)), index_bytes(places)),
            "memory",
            table.type,
        )

    return rule


def _indexed(call: OperationCall) -> NecessaryWork | None:
    """Return `index`: with one list of indices along the first dimension."""
    table, places = call.tensor(0), call.list(1)
    if table is None or len(places) != 1 or not table.shape or places[0].type == "bool":
        return None
    result = tensor_like(table, (*places[0].shape, *table.shape[1:]))
    return NecessaryWork(0.0, added_bytes(moved_bytes(result), index_bytes(places[0])), "memory", table.type)


def _added_by_index(data: int, index: int) -> Rule:
    """Return the rule of an addition by index.

    It reads the rows and their indices; how many different rows are written is not known.
    """

    def rule(call: OperationCall) -> NecessaryWork | None:
        rows, places = call.tensor(data), call.tensor(index)
        if rows is None or places is None:
            return None
        return NecessaryWork(
            float(rows.elements), added_bytes(moved_bytes(rows), index_bytes(places)), "fma", rows.type
        )

    return rule


def _picked(data: int, index: int) -> Rule:
    """Return the rule of one element per row: read by the loss, written by its gradient without the zeros around it."""

    def rule(call: OperationCall) -> NecessaryWork | None:
        rows, places = call.tensor(data), call.tensor(index)
        if rows is None or places is None:
            return None
        picked = tensor_like(rows, (places.elements,))
        return NecessaryWork(
            float(places.elements),
            added_bytes(moved_bytes(picked), index_bytes(places)),
            "memory",
            rows.type,
        )

    return rule


def _step(read: Sequence[int], written: Sequence[int], flop: int) -> Rule:
    """Return the rule of an optimizer's step over lists of tensors, each element of which is read or written once."""

    def rule(call: OperationCall) -> NecessaryWork | None:
        first = call.list(0)
        lists = [call.list(place) for place in (*read, *written)]
        if not first:
            return None
        count = sum(tensor.elements for tensor in first)
        moved = moved_bytes(*(tensor for tensors in lists for tensor in tensors))
        return NecessaryWork(float(flop * count), moved, "fma", first[0].type)

    return rule


def _each(inputs: int, flop: int) -> Rule:
    """Return `_foreach_*`: element by element over lists; in place, or into new ones."""

    def rule(call: OperationCall) -> NecessaryWork | None:
        lists = [tensors for place in range(inputs) if (tensors := call.list(place))]
        if not call.list(0):
            return None
        # one that is no list goes into each of its partners; of an unknown one nothing counts
        moved = moved_bytes(*(tensor for tensors in (*lists, call.list(0)) for tensor in tensors))
        count = sum(tensor.elements for tensor in call.list(0))
        return NecessaryWork(float(flop * count), moved, "fma" if flop else "memory", lists[0][0].type)

    return rule


def _each_reduced(call: OperationCall) -> NecessaryWork | None:
    tensors = call.list(0)
    if not tensors:
        return None
    count = sum(tensor.elements for tensor in tensors)
    return NecessaryWork(2.0 * count, moved_bytes(*tensors), "fma", tensors[0].type)


def _each_copied(call: OperationCall) -> NecessaryWork | None:
    targets, sources = call.list(0), call.list(1)
    return (
        NecessaryWork(0.0, moved_bytes(*targets, *sources), "memory", targets[0].type)
        if targets and sources
        else None
    )


LAYERS: tuple[WorkFormula, ...] = (
    WorkFormula(
        "layer norm",
        ("native_layer_norm",),
        "7 an element",
        "input + parameters + result + mean and deviation of each row",
        "Layer Normalization (Ba et al. 2016), equation 3",
        _norm((2, 3), 2, 7),
    ),
    WorkFormula(
        "RMS norm",
        ("_fused_rms_norm",),
        "4 an element",
        "input + weight + result + deviation of each row",
        "Root Mean Square Layer Normalization (Zhang and Sennrich 2019), equation 4",
        _norm((2,), 1, 4),
    ),
    WorkFormula(
        "group norm",
        ("native_group_norm",),
        "7 an element",
        "input + parameters + result + mean and deviation of each group",
        "Group Normalization (Wu and He 2018), section 3",
        _norm((1, 2), 2, 7),
    ),
    WorkFormula(
        "batch norm",
        words("native_batch_norm cudnn_batch_norm _native_batch_norm_legit miopen_batch_norm"),
        "7 an element",
        "input + parameters + result + mean and deviation of each channel",
        "Batch Normalization (Ioffe and Szegedy 2015), algorithm 1",
        _norm((1, 2), 2, 7),
    ),
    *(
        WorkFormula(
            f"{title}, backward",
            names,
            f"{flop} an element",
            "gradient + input + statistics + weight, and the gradients that are requested",
            "the derivative of its forward formula",
            rule,
        )
        for title, names, flop, rule in (
            ("layer norm", ("native_layer_norm_backward",), 7, _norm_backward(0, 1, (3, 4), 5, 7, 7)),
            ("RMS norm", ("_fused_rms_norm_backward",), 8, _norm_backward(0, 1, (3,), 4, 5, 8)),
            ("group norm", ("native_group_norm_backward",), 7, _norm_backward(0, 1, (2, 3), 4, 9, 7)),
            ("batch norm", ("native_batch_norm_backward",), 7, _norm_backward(0, 1, (5, 6), 2, 9, 7)),
            (
                "batch norm of cuDNN",
                ("cudnn_batch_norm_backward",),
                7,
                _norm_backward(1, 0, (5, 6), 2, None, 7),
            ),
        )
    ),
    WorkFormula(
        "embedding",
        ("embedding",),
        "0",
        "indices + result; rows of the table are not known",
        TRAFFIC,
        _looked_up(0, 1),
    ),
    WorkFormula("gather", ("gather",), "0", "indices + result", TRAFFIC, _looked_up(0, 2)),
    WorkFormula("rows by index", ("index_select",), "0", "indices + result", TRAFFIC, _looked_up(0, 2)),
    WorkFormula("indexing by one list", ("index",), "0", "indices + result", TRAFFIC, _indexed),
    WorkFormula(
        "embedding, backward",
        ("embedding_dense_backward",),
        "1 an element",
        "gradient + indices; rows that are written are not known",
        TRAFFIC,
        _added_by_index(0, 1),
    ),
    WorkFormula(
        "added by index",
        words("index_add_ scatter_add_ index_add scatter_add"),
        "1 an element",
        "what is added + indices",
        TRAFFIC,
        _added_by_index(3, 2),
    ),
    WorkFormula(
        "negative log likelihood",
        ("nll_loss_forward",),
        "1 a row",
        "one element a row + targets",
        TRAFFIC,
        _picked(0, 1),
    ),
    WorkFormula(
        "negative log likelihood, backward",
        ("nll_loss_backward",),
        "1 a row",
        "one element a row + targets; the zeros are another operation's",
        TRAFFIC,
        _picked(1, 2),
    ),
    WorkFormula(
        "Adam, fused",
        ("_fused_adam_",),
        "12 an element",
        "reads 4 (parameter, gradient, both moments), writes 3",
        "Adam (Kingma and Ba 2014), algorithm 1",
        _step((0, 1, 2, 3), (0, 2, 3), 12),
    ),
    WorkFormula(
        "AdamW, fused",
        ("_fused_adamw_",),
        "14 an element",
        "reads 4, writes 3",
        "AdamW (Loshchilov and Hutter 2017), algorithm 2",
        _step((0, 1, 2, 3), (0, 2, 3), 14),
    ),
    WorkFormula(
        "SGD, fused",
        ("_fused_sgd_",),
        "2 an element",
        "reads parameter, gradient and momentum, writes parameter and momentum",
        "Sutskever et al. 2013, equations 1 and 2",
        _step((0, 1, 2), (0, 2), 2),
    ),
    *(
        WorkFormula(
            title,
            with_in_place(words(names)),
            f"{flop} an element",
            "lists read + list written",
            TRAFFIC,
            rule,
        )
        for title, names, flop, rule in (
            (
                "one list",
                "_foreach_sqrt _foreach_neg _foreach_abs _foreach_exp _foreach_reciprocal _foreach_rsqrt",
                1,
                _each(1, 1),
            ),
            (
                "two lists, or one and a number",
                "_foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_maximum _foreach_minimum _foreach_pow",
                1,
                _each(2, 1),
            ),
            ("three lists, the last two of which may be one", "_foreach_addcmul", 2, _each(2, 2)),
            ("three lists", "_foreach_addcdiv", 2, _each(3, 2)),
            ("between two lists", "_foreach_lerp", 2, _each(2, 2)),
        )
    ),
    WorkFormula("norms of a list", ("_foreach_norm",), "2 an element", "the list", TRAFFIC, _each_reduced),
    WorkFormula("lists copied", ("_foreach_copy_",), "0", "both lists", TRAFFIC, _each_copied),
    WorkFormula(
        "lists of zeros",
        ("_foreach_zero_",),
        "0",
        "the list",
        TRAFFIC,
        lambda call: (
            NecessaryWork(0.0, moved_bytes(*call.list(0)), "memory", call.list(0)[0].type)
            if call.list(0)
            else None
        ),
    ),
)
