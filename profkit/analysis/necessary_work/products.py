"""Matrix products and attention."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.analysis.necessary_work.calls import OperationCall, Tensor
from profkit.analysis.necessary_work.work import (
    FLASH,
    PALM,
    NecessaryWork,
    Rule,
    WorkFormula,
    added_bytes,
    broadcast_shape,
    moved_bytes,
    tensor_like,
    words,
)


def _product(left: Tensor, right: Tensor, flop: float, *others: Tensor | None) -> NecessaryWork:
    return NecessaryWork(flop, moved_bytes(left, right, *others), "tensor", left.type)


def _matrices(at: int) -> Rule:
    """Return the rule of products of two matrices, or of a batch of them; `at` is the index of the first factor."""

    def rule(call: OperationCall) -> NecessaryWork | None:
        left, right = call.tensor(at), call.tensor(at + 1)
        if (
            left is None
            or right is None
            or len(left.shape) not in (2, 3)
            or len(left.shape) != len(right.shape)
        ):
            return None
        *batch, rows, inner = left.shape
        if right.shape[-2] != inner or list(right.shape[:-2]) != batch:
            return None
        result = tensor_like(left, (*batch, rows, right.shape[-1]))
        added = call.tensor(0) if at and not _is_zero(call.value(at + 2)) else None
        return _product(left, right, 2.0 * result.elements * inner, result, added)

    return rule


def _is_zero(text: str) -> bool:
    return text in ("0", "0.", "0.0")


def _vectors(at: int) -> Rule:
    """Return the rule of products of matrix and vector, or of two vectors."""

    def rule(call: OperationCall) -> NecessaryWork | None:
        left, right = call.tensor(at), call.tensor(at + 1)
        if left is None or right is None or not left.shape or right.shape != left.shape[-1:]:
            return None
        result = tensor_like(left, left.shape[:-1])
        added = call.tensor(0) if at else None
        return NecessaryWork(
            2.0 * left.elements, moved_bytes(left, right, result, added), "tensor", left.type
        )

    return rule


def _matmul(call: OperationCall) -> NecessaryWork | None:
    left, right = call.tensor(0), call.tensor(1)
    if left is None or right is None or not left.shape or not right.shape:
        return None
    first = left.shape if len(left.shape) > 1 else (1, *left.shape)
    second = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    batch = broadcast_shape([Tensor(first[:-2]), Tensor(second[:-2])])
    if first[-1] != second[-2] or batch is None:
        return None
    rows = first[-2:-1] if len(left.shape) > 1 else ()
    columns = second[-1:] if len(right.shape) > 1 else ()
    result = tensor_like(left, (*batch, *rows, *columns))
    return _product(left, right, 2.0 * result.elements * first[-1], result)


def _linear(call: OperationCall) -> NecessaryWork | None:
    data, weight = call.tensor(0), call.tensor(1)
    if data is None or weight is None or len(weight.shape) != 2 or data.shape[-1:] != weight.shape[1:]:
        return None
    result = tensor_like(data, (*data.shape[:-1], weight.shape[0]))
    return _product(data, weight, 2.0 * result.elements * weight.shape[1], result, call.tensor(2))


# ------------------------------------------------------------ attention


@dataclass(frozen=True)
class _Attention:
    """Where an operation of attention has what. `inner`: heads and length change places."""

    causal: int
    mask: int | None = None
    backward: bool = False
    inner: bool = False
    # Of sequences that are packed into one: how long each is does not follow from shapes.
    lengths: int | None = None

    def __call__(self, call: OperationCall) -> NecessaryWork | None:
        at = 1 if self.backward else 0
        query, key, value = (call.tensor(at + place) for place in range(3))
        if query is None or key is None or value is None or not len(query.shape) == len(key.shape) == 4:
            return None
        if self.lengths is not None and call.tensor(self.lengths) is not None:
            return None
        batch, heads, rows, channels = self._order(query)
        _, groups, columns, inner = self._order(key)
        last = value.shape[-1]
        if inner != channels or not groups or heads % groups:
            return None
        mask = call.tensor(self.mask) if self.mask is not None else None
        causal = self._is_causal(call) if mask is None else False
        seen = min(rows, columns) if causal else columns
        pairs = seen * (seen + 1) // 2 + (rows - seen) * seen if causal else rows * columns
        each = 3 * channels + 2 * last if self.backward else channels + last
        result = tensor_like(query, (batch, heads, rows, last))
        # keys that no query sees are not read
        kept = [Tensor((batch, groups, seen, size), query.type) for size in (channels, last)]
        moved = moved_bytes(query, *kept, result, mask)
        if self.backward:  # the gradients of the three; beside `result` its gradient
            moved = added_bytes(
                moved, moved_bytes(result, tensor_like(query), tensor_like(key), tensor_like(value))
            )
        return NecessaryWork(2.0 * batch * heads * pairs * each, moved, "tensor", query.type)

    def _order(self, tensor: Tensor) -> tuple[int, ...]:
        batch, first, second, size = tensor.shape
        return (batch, second, first, size) if self.inner else (batch, first, second, size)

    def _is_causal(self, call: OperationCall) -> bool:
        """Return whether each query sees only keys up to its own place; if that is not known, as if it did."""
        value = call.value(self.causal)
        return value not in ("False", "0") if call.has_values and value else not call.has_values


PRODUCTS: tuple[WorkFormula, ...] = (
    WorkFormula("matrix product", words("mm _int_mm"), "2 m n k", "m k + k n + m n", PALM, _matrices(0)),
    WorkFormula(
        "matrix product, added to",
        words("addmm addmm_ _addmm_activation"),
        "2 m n k",
        "m k + k n + m n + what is added, at its own size",
        PALM,
        _matrices(1),
    ),
    WorkFormula("batched product", ("bmm",), "2 b m n k", "b (m k + k n + m n)", PALM, _matrices(0)),
    WorkFormula(
        "batched product, added to",
        words("baddbmm baddbmm_"),
        "2 b m n k",
        "b (m k + k n + m n) + what is added",
        PALM,
        _matrices(1),
    ),
    WorkFormula("product of scaled FP8", ("_scaled_mm",), "2 m n k", "m k + k n + m n", PALM, _matrices(0)),
    WorkFormula("matrix by vector", words("mv dot vdot"), "2 m k", "m k + k + m", PALM, _vectors(0)),
    WorkFormula(
        "matrix by vector, added to", words("addmv addmv_"), "2 m k", "m k + k + 2 m", PALM, _vectors(1)
    ),
    WorkFormula("product of any dimensions", ("matmul",), "2 b m n k", "both + result", PALM, _matmul),
    WorkFormula(
        "linear layer", words("linear mkldnn_linear"), "2 m n k", "m k + n k + m n + bias", PALM, _linear
    ),
    *(
        WorkFormula(
            f"attention, {title}",
            names,
            "2 h p (5 d)" if rule.backward else "2 h p (2 d), p = pairs of a query and a key that it sees",
            "q, k, v, result, their four gradients" if rule.backward else "q + k + v + result + mask",
            FLASH,
            rule,
            {"is_causal": rule.causal},
        )
        for title, names, rule in (
            (
                "forward",
                words("_scaled_dot_product_flash_attention"),
                _Attention(causal=4),
            ),
            (
                "forward, of any kind",
                ("scaled_dot_product_attention",),
                _Attention(causal=5, mask=3),
            ),
            (
                "forward, on the CPU",
                ("_scaled_dot_product_flash_attention_for_cpu",),
                _Attention(causal=4, mask=5),
            ),
            (
                "forward, with a mask",
                words("_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"),
                _Attention(causal=6, mask=3),
            ),
            (
                "forward, flash",
                ("_flash_attention_forward",),
                _Attention(causal=8, inner=True, lengths=3),
            ),
            (
                "forward, efficient",
                ("_efficient_attention_forward",),
                _Attention(causal=9, mask=3, inner=True, lengths=4),
            ),
            (
                "forward, cuDNN",
                ("_cudnn_attention_forward",),
                _Attention(causal=10, mask=3, lengths=4),
            ),
            (
                "backward, flash",
                ("_scaled_dot_product_flash_attention_backward",),
                _Attention(causal=11, backward=True, lengths=6),
            ),
            (
                "backward, on the CPU",
                ("_scaled_dot_product_flash_attention_for_cpu_backward",),
                _Attention(causal=7, mask=8, backward=True),
            ),
            (
                "backward, flash's kernel",
                ("_flash_attention_backward",),
                _Attention(causal=11, backward=True, inner=True, lengths=6),
            ),
            (
                "backward, efficient",
                ("_scaled_dot_product_efficient_attention_backward",),
                _Attention(causal=11, mask=4, backward=True),
            ),
            (
                "backward, efficient's kernel",
                ("_efficient_attention_backward",),
                _Attention(causal=14, mask=4, backward=True, inner=True, lengths=6),
            ),
            (
                "backward, cuDNN",
                words("_scaled_dot_product_cudnn_attention_backward _cudnn_attention_backward"),
                _Attention(causal=14, mask=8, backward=True, lengths=9),
            ),
        )
    ),
)
