"""What one instruction computes, told by its mnemonic and operands: floating-point lanes, width, precision.

Which instructions are floating-point arithmetic, and that a fused multiply-add counts twice, follows Intel's
FP_ARITH_INST_RETIRED (Intel SDM volume 3, performance events): add, subtract, multiply, divide, square root,
minimum, maximum, reciprocals, horizontal and dot products; no moves, compares, conversions or roundings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["other", "fp", "simd-int"]


@dataclass(frozen=True)
class Instruction:
    """What one execution does: `flop` operations of `bits` each, in `width` bits of register (0: scalar)."""

    kind: Kind = "other"
    flop: int = 0
    bits: int = 0
    width: int = 0


OTHER = Instruction()

_X86_FMA = re.compile(r"v?fn?m(?:add|sub)(?:add|sub)?(?:132|213|231)?([ps])([sdh])$")
_X86_FP = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|min|max|rcp(?:14|28)?|rsqrt(?:14|28)?|addsub|hadd|hsub)([ps])([sdh])$"
)
_X86_DOT = re.compile(r"v?dp(p)([sd])$")
_X86_DOT_BF16 = re.compile(r"vdpbf16ps$")
_X87 = re.compile(r"(?:fi?(?:add|sub|subr|mul|div|divr)p?|fsqrt)$")
_X86_PACKED_INT = re.compile(
    r"(?:v?p(?!ush|op|refetch|extr|insr|ause)|vbroadcasti|vinserti|vextracti)[a-z0-9]+$"
)
_X86_BITS = {"s": 32, "d": 64, "h": 16}
_X86_WIDTHS = (("zmm", 512), ("ymm", 256), ("xmm", 128), ("mm", 64))

_ARM_FMA = re.compile(r"(?:fn?m(?:add|sub)|fml[as]l?2?)$")
_ARM_FP = re.compile(
    r"f(?:add|sub|n?mul|mulx|div|sqrt|min|max|minnm|maxnm|abd|addp|minp|maxp|minnmp|maxnmp|recpe|rsqrte)v?$"
)
_ARM_STEP = re.compile(r"f(?:recps|rsqrts)$")
_ARM_DOT_BF16 = {"bfdot": 4, "bfmmla": 8}  # operations per 32-bit lane of the result
_ARM_VECTOR = re.compile(r"v\d+\.(\d+)([bhsd])")
_ARM_SCALAR = re.compile(r"([hsd])\d+")
_ARM_BITS = {"b": 8, "h": 16, "s": 32, "d": 64}
_ARM_NO_INT = ("f", "bf", "ld", "st", "mov", "dup", "ins", "umov", "smov", "scvtf", "ucvtf", "ext")


@lru_cache(maxsize=65536)  # a program has few distinct texts, each at many addresses
def x86_64(mnemonic: str, operands: str) -> Instruction:
    """What an x86-64 instruction computes, in capstone's Intel syntax."""
    mnemonic = mnemonic.rpartition(" ")[2]  # rep, lock
    width = next((bits for name, bits in _X86_WIDTHS if name in operands), 0)
    for pattern, each in ((_X86_FMA, 2), (_X86_FP, 1), (_X86_DOT, 2)):
        if (matched := pattern.match(mnemonic)) is not None:
            bits = _X86_BITS[matched[2]]
            if matched[1] == "s":
                return Instruction("fp", each, bits)
            return Instruction("fp", each * width // bits, bits, width)
    if _X86_DOT_BF16.match(mnemonic):  # two products and two sums per 32-bit lane
        return Instruction("fp", 4 * width // 32, 16, width)
    if _X87.match(mnemonic):
        return Instruction("fp", 1, 80)
    if width and _X86_PACKED_INT.match(mnemonic):
        return Instruction("simd-int", width=width)
    return OTHER


@lru_cache(maxsize=65536)
def aarch64(mnemonic: str, operands: str) -> Instruction:
    """What an AArch64 instruction computes, scalar or Advanced SIMD; valgrind has no SVE."""
    vector = _ARM_VECTOR.search(operands)
    if mnemonic in _ARM_DOT_BF16:
        return Instruction("fp", 4 * _ARM_DOT_BF16[mnemonic], 16, 128)
    each = 2 if _ARM_FMA.match(mnemonic) or _ARM_STEP.match(mnemonic) else int(bool(_ARM_FP.match(mnemonic)))
    if each and vector is not None:
        lanes, bits = int(vector[1]), _ARM_BITS[vector[2]]
        return Instruction("fp", each * lanes, bits, max(128, lanes * bits))
    if each:
        scalar = _ARM_SCALAR.match(operands)
        return Instruction("fp", each, _ARM_BITS[scalar[1]] if scalar else 0)
    if vector is not None and not mnemonic.startswith(_ARM_NO_INT):
        return Instruction("simd-int", width=128)
    return OTHER


CLASSIFIERS = {"x86_64": x86_64, "aarch64": aarch64}
