"""The source behind samples: lines of the program's files, and the lines of machine-code addresses.

The latter are found by binutils (`nm`, `addr2line`), which read a program's tables and debug information. Of
functions that were inlined into each other, the innermost counts whose source is here and that is no part of
a system's header or a compiler's library.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from profkit.analysis.function_names import plain_symbol
from profkit.analysis.hot_spots.python import imported_lines
from profkit.analysis.hot_spots.rows import is_met_for_others
from profkit.analysis.stacks.line_counts import find_loops
from profkit.analysis.stacks.merge import UNKNOWN
from profkit.analysis.stacks.native.code import native_constructs
from profkit.analysis.stacks.passed_lines import has_slow_call, is_of_line, passed_lines, takes_long
from profkit.analysis.stacks.polling_loops import looks_again
from profkit.analysis.stacks.python_code import is_users_code
from profkit.analysis.stacks.source import LONGEST_TEXT, MAX_BYTES, body_line, line_code, lines_of, parsed
from profkit.backends.shell_script import script_of, with_lines
from profkit.core.files.regular import read_start
from profkit.core.process import ask
from profkit.core.types import (
    CodeLine,
    Construct,
    Fact,
    LineCode,
    LineSamples,
    Place,
    RegisterFact,
    Report,
    SampledTime,
    Workload,
)
from profkit.profilers.perf.look_records import Look
from profkit.profilers.perf.registers import CodePlace, line_addresses, register_facts
from profkit.profilers.perf.samples import MAX_SYMBOL
from profkit.profilers.perf.source_lines import Address, CodeAt

MAX_SOURCES = 30  # lines of most time whose source is looked at


def with_source(report: Report, workload: Workload) -> SampledTime | None:
    """Return the lines with what their source says, where its file can be read."""
    sampled = report.sampled
    if sampled is None:
        return None
    texts: dict[str, str] = {}

    def text_of(file: str) -> str:
        if file not in texts:
            texts[file] = _text_of(Path(workload.folder, file))
        return texts[file]

    def code_of(file: str | None, line: int | None) -> LineCode | None:
        if file is None or line is None or not is_users_code(file):
            return None
        return line_code(text_of(file), line)

    lines = []
    for number, line in enumerate(in_own_lines(in_bodies(sampled.lines, text_of), text_of)):
        code = code_of(line.file, line.line) if number < MAX_SOURCES else None
        if code is not None and code.loop is None and "await" in line.waits:
            line = _at_loop(line, code_of)
            code = code_of(line.file, line.line)
        above = line.callers[0] if line.callers and number < MAX_SOURCES else None
        caller_code = code_of(above.file, above.line) if above is not None else None
        lines.append(_asleep(replace(line, code=code, caller_code=caller_code)))
    imports = next((profile for profile in report.profiles if profile.kind == "sampled-imports"), None)
    importing = imported_lines(imports)[:MAX_SOURCES] if imports is not None else []
    import_codes = {
        f"{line.file}:{line.line}": code
        for line, _, _ in importing
        if (code := code_of(line.file, line.line)) is not None
    }
    calling = tuple(
        replace(line, code=code_of(line.file, line.line), caller_code=code_of(above.file, above.line))
        for line in sampled.outer
        for above in (line.callers[0] if line.callers else line,)
    )
    work = sum(sampled_line.main_wall for sampled_line in lines) + sampled.rest_wall  # imports are in neither
    loops = find_loops(lines, work, lambda file: parsed(text_of(file)))
    programs = with_lines(sampled.programs, script_of(workload))
    return replace(
        sampled, lines=tuple(lines), outer=calling, import_codes=import_codes, loops=loops, programs=programs
    )


def _at_loop(line: LineSamples, code_of: Callable[[str | None, int | None], LineCode | None]) -> LineSamples:
    """Return what is awaited at the line of the coroutine above it whose loop awaits it again and again.

    Its first caller is then the coroutine that it calls, or one further down that awaits within a block, as a lock.
    """
    chain = [CodeLine(line.function, line.file, line.line, line.main_wall)]
    for number, caller in enumerate(line.callers):
        code = code_of(caller.file, caller.line)
        if code is not None and code.loop is not None:
            codes = ((frame, code_of(frame.file, frame.line)) for frame in chain)
            held = (frame for frame, below in codes if below is not None and below.find("within"))
            callers = (next(held, chain[-1]), *line.callers[number:])
            return replace(
                line, function=caller.function, file=caller.file, line=caller.line, callers=callers
            )
        chain.append(caller)
    return line


_SLEEPS = re.compile(r"time\.sleep\([^()]*\)")


def _asleep(line: LineSamples) -> LineSamples:
    """Return a line that does nothing but sleep without what other threads computed just before they were seen there.

    A thread that wakes up waits for the interpreter's lock, and then it is not asleep, though still at that line.
    """
    if line.code is None or line.other_wall <= 0 or _SLEEPS.fullmatch(line.code.statement) is None:
        return line
    return replace(
        line, other_cpu=0.0, own=min(line.own, line.main_cpu), other_waits={"sleep": line.other_wall}
    )


def split_notes(sampled: SampledTime | None) -> tuple[Fact, ...]:
    """Return a note on a line at which samples are taken whatever runs around it: its share is not its own."""
    lines = [line for line in (sampled.lines if sampled is not None else ()) if is_met_for_others(line)]
    return tuple(
        Fact.of("split-not-known", line=f"{Path(line.file or '').name}:{line.line}") for line in lines[:1]
    )


def in_bodies(lines: Sequence[LineSamples], text_of: Callable[[str], str]) -> list[LineSamples]:
    """Move lines in the head of a function to its body: nobody can change a `def`.

    Its time goes to the line of the body that takes most; where none was seen, to the first statement.
    """
    heads: list[LineSamples] = []
    bodies: list[LineSamples] = []
    for number, line in enumerate(lines):
        looked_at = number < MAX_SOURCES and line.file and line.line and is_users_code(line.file)
        at = body_line(text_of(line.file), line.line) if looked_at and line.file and line.line else line.line
        if at != line.line:
            heads.append(replace(line, line=at))
        else:
            bodies.append(line)
    for head in heads:
        own = (n for n, body in enumerate(bodies) if (body.file, body.function) == (head.file, head.function))
        most = max(own, key=lambda n: bodies[n].main_wall + bodies[n].other_cpu, default=None)
        if most is None:
            bodies.append(head)
        else:
            bodies[most] = _added(bodies[most], head)
    return sorted(bodies, key=lambda line: -(line.main_wall + line.other_cpu))


def in_own_lines(lines: Sequence[LineSamples], text_of: Callable[[str], str]) -> list[LineSamples]:
    """Return the lines with the samples of a long operation at its own, and not where the interpreter looked up next.

    Where one line alone of those that were run through takes long by what its names hold, and the sampled one does not.
    """
    kept: list[LineSamples] = []
    moved: list[LineSamples] = []
    for number, line in enumerate(lines):
        at = _long_line(line, text_of) if number < MAX_SOURCES else None
        if at is None:
            kept.append(line)
        else:
            moved.append(replace(line, line=at))
    for line in moved:
        place = (line.file, line.function, line.line)
        same = (
            n
            for n, kept_line in enumerate(kept)
            if (kept_line.file, kept_line.function, kept_line.line) == place
        )
        if (known := next(same, None)) is None:
            kept.append(line)
        else:
            kept[known] = _added(kept[known], line)
    return sorted(kept, key=lambda line: -(line.main_wall + line.other_cpu))


def _long_line(line: LineSamples, text_of: Callable[[str], str]) -> int | None:
    """Return the one line before a sampled one that takes long and ends in a look there; None where none does."""
    if not (line.file and line.line and is_users_code(line.file) and line.variables and is_of_line(line)):
        return None
    text = text_of(line.file)
    tree = parsed(text)
    if (
        tree is None
        or takes_long(line_code(text, line.line), line.variables)
        or has_slow_call(tree, line.line)
    ):
        return None
    passed = passed_lines(tree, line.line)
    long = [number for number in passed if takes_long(line_code(text, number), line.variables)]
    return long[0] if len(long) == 1 else None


def _added(first_part: LineSamples, second_part: LineSamples) -> LineSamples:
    """Return the sum of two parts of one line."""

    def summed(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
        return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in (*first, *second)}

    def largest(places: tuple[CodeLine, ...]) -> tuple[CodeLine, ...]:
        return tuple(sorted(places, key=lambda place: -place.value))

    return replace(
        first_part,
        main_wall=first_part.main_wall + second_part.main_wall,
        main_cpu=first_part.main_cpu + second_part.main_cpu,
        other_wall=first_part.other_wall + second_part.other_wall,
        other_cpu=first_part.other_cpu + second_part.other_cpu,
        own=first_part.own + second_part.own,
        collecting=first_part.collecting + second_part.collecting,
        given=first_part.given + second_part.given,
        waits=summed(first_part.waits, second_part.waits),
        other_waits=summed(first_part.other_waits, second_part.other_waits),
        ranks=summed(first_part.ranks, second_part.ranks),
        rank_waits=summed(first_part.rank_waits, second_part.rank_waits),
        longest=max(first_part.longest or 0.0, second_part.longest or 0.0) or None,
        threads=max(first_part.threads, second_part.threads),  # the same ones may be in both
        processes=max(first_part.processes, second_part.processes),
        callees=largest((*first_part.callees, *second_part.callees)),
        callers=largest((*first_part.callers, *second_part.callers)),
        below=_joined((*first_part.below, *second_part.below)),
    )


def _joined(places: Sequence[CodeLine]) -> tuple[CodeLine, ...]:
    """Return the functions, each once, with the sum of its seconds."""
    sums: dict[CodeLine, float] = {}
    for place in places:
        key = replace(place, value=0.0)
        sums[key] = sums.get(key, 0.0) + place.value
    return tuple(replace(place, value=value) for place, value in sums.items())


def _text_of(path: Path) -> str:
    """Read the text of a file; empty where it cannot be read."""
    try:
        return read_start(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


SECONDS = 20.0  # for binutils: a binary of 1 GB takes some
_SYSTEM = re.compile(
    r"^/usr/(include|lib|local/include)/|/rustc/|/rust/deps/|/library/(std|core|alloc)/|/\.cargo/|^\?\?|/gcc/|/sysdeps/"
)


# What a compiler makes for a type (a copy, a comparison) is named at the type: it belongs to the line that uses it.
_GENERATED = re.compile(r"\s*((template\s*<.*>\s*)?(struct|class|union)\b)")


_RUST_ITEM = re.compile(
    r"\s*(?:pub(?:\(\w+\))?\s+)?(?:const |unsafe |async )*(#\[derive|struct|enum|impl|fn)\b"
)
MAX_FIELDS = 100  # lines of a type's definition


def program_file(workload: Workload) -> Path | None:
    """Return the file of a program that is machine code, of a script that of its interpreter; None for any other."""
    name = workload.command[0] if workload.command else ""
    path = Path(workload.folder, name) if "/" in name else Path(shutil.which(name) or "")
    if path.is_file() and (interpreter := _interpreter_of(path)) is not None:
        path = interpreter
    return path if path.is_file() and read_start(path, 4) == b"\x7fELF" else None


MAX_HEAD = 256  # bytes of a script's first line that Linux reads


def _interpreter_of(script: Path) -> Path | None:
    """Return the program that a script's first line names: `bash` of `#!/usr/bin/env -S bash -e`; None without one."""
    head = read_start(script, MAX_HEAD)
    if not head.startswith(b"#!"):
        return None
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        return Path(shutil.which(named) or "")
    return Path(words[0]) if words else None


def source_places(program: Path, keys: Sequence[Address]) -> Mapping[Address, CodeAt]:
    """Return the code at symbols with offsets, as far as binutils and the program's own tables tell."""
    addr2line = shutil.which("addr2line")
    wanted = {symbol for symbol, _ in keys if symbol != UNKNOWN}
    if addr2line is None or not wanted:
        return {}
    try:
        starts = _starts(program, wanted)
        known = [key for key in keys if key[0] in starts]
        addresses = [f"{_at(starts[symbol], offset):#x}" for symbol, offset in known]
        if not known:
            return {}
        return dict(zip(known, _code_at(addr2line, program, addresses), strict=False))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


def source_of_addresses(program: Path, addresses: Sequence[int]) -> Mapping[int, CodeAt]:
    """Return the code at addresses of the program's file; none where binutils are not there."""
    addr2line = shutil.which("addr2line")
    if addr2line is None or not addresses:
        return {}
    try:
        codes = _code_at(addr2line, program, [f"{address:#x}" for address in addresses])
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return dict(zip(addresses, codes, strict=False))


def _code_at(addr2line: str, program: Path, addresses: Sequence[str]) -> list[CodeAt]:
    text = _output([addr2line, "-a", "-i", "-f", "-C", "-e", str(program), *addresses])
    return [_code_of(block) for block in re.split(r"^0x[0-9a-f]+\n", text, flags=re.MULTILINE)[1:]]


def seen_in_registers(program: Path, looks: Sequence[Look]) -> tuple[RegisterFact, ...]:
    """Return what looks at a program's registers show, at the places that the samples have as well."""
    codes = source_of_addresses(program, sorted(line_addresses(looks, program)))
    places = {}
    for address, code in codes.items():
        if code.place is not None:
            where = code.place
            places[address] = CodePlace(where.function or "", where.file, where.line, not code.inlined)
        elif code.inlined:  # without debug information
            places[address] = CodePlace(plain_symbol(code.inlined[-1]), None, None, True)
    return register_facts(program, looks, places)


def address_of(program: Path, place: str) -> int | None:
    """Return the address in the program's file of `symbol+0x10`; None where its table does not have it."""
    symbol, _, offset = place.rpartition("+")
    if symbol == UNKNOWN:
        return None
    try:
        starts = _starts(program, {symbol}).get(symbol)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return _at(starts, int(offset, 16)) if starts is not None else None


_Extent: TypeAlias = "tuple[int, int]"  # start and size of a symbol


def _starts(program: Path, wanted: set[str]) -> dict[str, list[_Extent]]:
    """Return the symbols of these names; perf omits C++ parameters, so that several may have the same name."""
    nm, filt = shutil.which("nm"), shutil.which("c++filt")
    if nm is None:
        return {}
    # Of a large program only those are asked for whose names can be meant.
    longest = {max(re.findall(r"\w+", name) or [name], key=len) for name in wanted}
    meant = re.compile("|".join(map(re.escape, longest)))
    extents: dict[str, list[_Extent]] = {}

    def look(how: Sequence[str], plain: Sequence[str] | None = None) -> None:
        rows = [
            row.split(maxsplit=3)
            for row in _output([nm, *how, "-S", "--defined-only", str(program)]).splitlines()
        ]
        symbols = [row for row in rows if len(row) == 4 and row[2] in "tTwWiu" and meant.search(row[3])]
        names = [row[3] for row in symbols]
        if plain is not None:
            names = _output(plain, "\n".join(names)).splitlines()
        for row, name in zip(symbols, names, strict=False):
            extent = int(row[0], 16), int(row[1], 16)
            if name in wanted and extent not in extents.setdefault(name, []):
                extents[name].append(extent)

    look(("-C",))
    if filt is not None and not wanted <= extents.keys():
        look((), (filt, "-p"))
    return extents


def _at(symbols: Sequence[_Extent], offset: int) -> int:
    """Return the address of an offset into a symbol: the first of its name that is long enough."""
    return next((start for start, size in symbols if offset < size), symbols[0][0]) + offset


def _code_of(block: str) -> CodeAt:
    """Return the innermost of the inlined functions at an address that is no library's and has its source here."""
    rows = block.splitlines()
    candidates: list[tuple[int, Place]] = []
    for level, (function, place) in enumerate(zip(rows[::2], rows[1::2], strict=False)):
        file, _, line = place.partition(" ")[0].rpartition(":")
        known = not _SYSTEM.search(file) and line.isdigit() and int(line) > 0
        if known and _is_written(file, int(line)):
            candidates.append((level, Place(function=function, file=file, line=int(line))))
    here = next(
        (candidate for candidate in candidates if Path(candidate[1].file or "").is_file()),
        candidates[0] if candidates else None,
    )
    inlined = rows[::2][: here[0]] if here is not None else rows[::2]
    # binutils gives an inlined function of C the name of the function around all of them.
    no_names = ("??", here[1].function if here is not None else None)
    return CodeAt(
        here[1] if here is not None else None, tuple(name for name in inlined if name not in no_names)
    )


def _is_written(file: str, line: int) -> bool:
    """Return whether somebody wrote what is at a line; not if the file is here and lacks it.

    binutils gives a template of a header the file that uses it now and then, with the line of the header.
    """
    text = _line_of(file, line)
    if not text.strip():
        return not Path(file).is_file()
    if file.endswith(".rs"):  # what `derive` makes is at the fields
        above = (_line_of(file, number) for number in range(line, max(0, line - MAX_FIELDS), -1))
        head = next((item for text_above in above if (item := _RUST_ITEM.match(text_above))), None)
        return head is None or head[1] in ("impl", "fn")
    return not _GENERATED.match(text)


def with_text(sampled: SampledTime | None) -> SampledTime | None:
    """Return the lines of a compiled program with the text of their source, where it can be read."""
    if sampled is None:
        return None
    waiting = tuple(map(_with_wait, _with_texts(sampled.waiting)))
    lines = tuple(map(_with_constructs, _with_texts(sampled.lines)))
    return replace(sampled, lines=lines, waiting=waiting, outer=tuple(_with_texts(sampled.outer)))


def _with_constructs(line: LineSamples) -> LineSamples:
    """Return a computing line with what its text and that of the lines around it say."""
    if line.code is None or not line.file or not line.line:
        return line
    constructs = native_constructs(_lines_of(line.file), line.line)
    return replace(line, code=replace(line.code, constructs=constructs)) if constructs else line


def _with_wait(line: LineSamples) -> LineSamples:
    """Return a waiting line with what its text says: the call, or a loop around a sleep that only polls."""
    if line.code is None or not line.file or not line.line or not line.callees:
        return line
    name = line.callees[0].function
    if "sync" in line.waits:
        constructs: tuple[Construct, ...] = (Construct("call", name),)
    elif "sleep" in line.waits and looks_again(_lines_of(line.file), line.line):
        constructs = Construct("sleep"), Construct("while")
    else:
        return line
    return replace(line, code=replace(line.code, constructs=constructs))


def _with_texts(lines: Sequence[LineSamples]) -> tuple[LineSamples, ...]:
    """Return the first lines with the text of their source."""
    return tuple(
        replace(line, code=LineCode(text)) if text else line
        for number, line in enumerate(lines)
        for text in (
            _line_of(line.file, line.line).strip()[:LONGEST_TEXT]
            if number < MAX_SOURCES and line.file and line.line
            else "",
        )
    )


@lru_cache(maxsize=64)
def _lines_of(file: str) -> tuple[str, ...]:
    """Return the lines of a file, read once."""
    return tuple(lines_of(_text_of(Path(file))))


def _line_of(file: str, number: int) -> str:
    """Return a line of source; empty where it is not here."""
    lines = _lines_of(file)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _output(argv: Sequence[str], given: str = "") -> str:
    """Return what a program prints, given `given` on standard input, with no line longer than a symbol may be."""
    text = ask(argv, timeout=SECONDS, given=given.encode()).stdout.decode("utf-8", "replace")
    return text if len(text) <= MAX_SYMBOL else "\n".join(line[:MAX_SYMBOL] for line in text.split("\n"))
