"""Where the time of a program goes: a short list of places, each with what it does and what it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.readings import CodeLine

SpotKind = Literal[
    "python",  # computes in lines of Python, and in what they call that is built in
    "library",  # computes in a Python library below the line
    "calls",  # calls functions of the program: all of their time, which other places have too
    "native",  # computes in machine code
    "gpu",  # kernels, where the host was not sampled
    "import",
    "sleep",
    "lock",
    "workers",  # the threads or processes of a pool, whose results it waits for
    "network",
    "await",  # an event loop waits for one coroutine
    "input",  # waits in select, poll or epoll
    "child",
    "pipe",
    "file",
    "sync",  # waits until a device has stored what was written
    "waiting",  # for something that is not known
    "rest",
]
# What a line of the program is written as, where that alone may be slow. `name` is the variable or function it is
# about, `how` what is done with it.
ConstructKind = Literal[
    "contains",  # `x in name`; `how` "values": in name.values(); "array": in name["column"].values and the like
    "contains-made",  # `x in list(...)`
    "search",  # the elements of `name`, which stays the same, are compared with each item; `how`: the test, or a method
    "sorts",  # name.sort(), sorted(name), heapify(name) of what stays the same; `how` is the function
    "parameter",  # `name` of a search is the function's parameter number `how`
    "looped-parameter",  # the same, and a loop of the function itself goes through it for each of its items
    "reads-again",  # reads the file `name`, the same each time; `how`: "loop", or the parameters that it depends on
    "same-member",  # asks for `name` of what stays; `how`: key, whole or call, then "loop" or the parameters it needs
    "same-matrix",  # factorises `name`, which stays; `how`: the function, and the parameters that it depends on
    "same-member",  # reads a member, as `name` writes it; `how`: call or [], and "loop" or the parameters behind it
    "same-call",  # calls `name`, which has no effect, with what stays; `how`: such calls, all of it there, the text
    "same-fit",  # fits a model `name` to what stays; `how`: the parameters of the function that this depends on
    # compiled code: the index of `name` moves by a row in an inner loop; `how`: what both loops count, and "turned" if
    # another array's does so in the outer one, "blocked" if the loops go through blocks
    "column-walk",
    "ordered",  # compiled code: a container that the file asks for its first, its last, or the next element
    "carried",  # needs `name` as the iteration before has left it; `how` "await": the next wait needs its answer
    # Compiled code, by its text:
    "overlaps",  # `name` has no effect, and calls itself for the arguments `how`, which lead to the same ones
    "one-of-sorted",  # a sort of the function's own array `name`, of which the element `how` alone is used
    "collected",  # Rust: the Vec `name` is collected, and then gone through once
    "copied-to-grow",  # the container `name` begins as a copy of `how` in a loop, and gets an element more
    "key-made",  # a text is made in line `how` to be looked up in `name`
    "grows-by-one",  # all elements move to make room for one more; `name` is their number
    "by-value",  # calls the function `name`, which takes `how` by value: `Quote quote`
    "next-node",  # a loop moves the pointer `name` to its member `how`
    "probes",  # a loop goes from slot to slot of the hash table `name`, by the index `how`
    "sorts-by-hand",  # two loops sort `name`, by `how`
    "all-pairs",  # two loops look for all pairs of `name` that are nearer to each other than `how`
    "always-the-same",  # loops of the function `name` that depend on nothing, and go round `how` times
    "given-grown",  # calls `name` with all of `how`, which the loop around makes longer each time
    "kept-mask",  # `name` is compared with an item into a mask, or indexed by it; `how`: the line of the mask, the item
    "tested-before",  # a test in line `how` looks for a value in `name`; this line behind it only adds to something
    "item-of",  # `__getitem__` makes an item of the list `name` anew, by the item's number `how` alone
    "grown-search",  # looks for a value in the list `name`, to which line `how` of the function appends
    "compares-all",  # all elements of `name`, an array that stays, with the item; `how`: "equal", or "nearest"
    "window",  # takes `how` of a slice of `name` that moves with the loop
    "aggregates",  # sum, min or max (`how`) of all elements of `name`, which stays, and of nothing that an item changes
    "asks",  # a loop asks `how`, an object that stays, for its attribute `name`, or calls it
    "gives",  # a loop calls `name` with arguments that stay the same, at the places `how`: "0 2"
    "gives-own",  # the same of a method outside of loops: what its object keeps from its constructor on
    "varies",  # a call of `name`, or a look-up ("[]"), depends on the item of a loop around it (`how` "item"), or on
    # what the function is given ("given")
    "shift",  # name.pop(0), .insert(0, x), .remove(x), .index(x), .count(x); `how` "rest 7": name = name[n:] in line 7
    # name = name + x, name = numpy.append(name, x); `how` "text": a text is added; "sum": sum(name, [])
    "grow",
    "element",  # name[i], name.at[...], name.item(): one element at a time; `how` "[i]" has the names in the index
    "item",  # in a loop over the elements of `how`, each of which is called `name`
    "builtin",  # sum, max and the like (`how`) of an expression of `name`, in which nothing is called
    # singular vectors `name`, of which the first ones alone are used, or none; `how`: of which matrix, and for its rows
    # (0) or its columns (1): "a 0"
    "vectors",
    "mask",  # name[name["day"] == day], name[days == day]; `how` is what all rows are compared with
    "sleep",
    "pattern",  # a regular expression is matched; `name` is its text, where that is known
    "call",  # of a function; `how` "constant": its arguments are the same each time
    # Of that name in another line of the function, too: calls of both are counted together. `how` is the number of the
    # others, if none is in a loop.
    "called-elsewhere",
    "power",  # name ** number, numpy.power(name, number); `how` is the number
    "product",  # name @ how, numpy.dot(name, how)
    "yields-of-itself",  # the line is in the generator `name`, which yields from a call of itself in the line `how`
    "lookup",  # name.loc[label]: few labels; `how` is the name of what is looked up
    "log",  # a message whose arguments are made before its level is looked at; `name` is the method, `how` the names of
    # what is called for them alone
    "spin",  # a `while` that only asks until something has happened; `name` is the method, `how` the test
    "asks-only",  # a line of such a loop that runs each time around, in which nothing is called but what it asks
    "idle",  # where such a loop has found nothing, and begins again
    "with",
    "within",  # the body of a `with`; `how` is its line
    "iterates",  # `for x in name`
    "paged",  # `for x in name` where `name` is an item of a loop around it, or a slice of what the call of `name` gives
    "await",
    "pure",  # the function has no effect, and depends on its arguments alone
    "pure-recursion",  # the same, and it calls itself in the line `how`
    "nested-loop",
    "while",  # the innermost loop around the line is a `while`; how: `clock` where only a time ends it
    "import",  # `how` "unused": nothing else in the file names what it binds; "in f g": only these functions do
    "coroutine",  # the line is in an `async def`
    "applied",  # the function is given to `name.apply(function, axis=1)`
    # `name` is called with a batch of one item of the loop, and needs no result of another item; or, `how` being the
    # function around it, with one that is made of its argument
    "of-one",
    "of-item",  # the same of an item itself
    "few-of-sorted",  # a sort of `name` by `how`, of which the first or the last few alone are kept
    "set-again",  # `how(name)` in an expression of sets, of what stays in the innermost loop
    "replaces",  # `name = name.replace(...)` in a loop over `how`
    "list-product",  # `x += name[i][k] * how[k][j]` in three loops
    "diagonal",  # a product with `numpy.diag(name)`, which stands `left` or `right`
    "asks-and-sleeps",  # `while name: await asyncio.sleep(how)`
    "flushes",  # `name(..., flush=True)`
]


@dataclass(frozen=True, kw_only=True)  # by name: a symbol would be taken for a kernel
class Place:
    """Where a problem is, as far as that is known."""

    kernel: str | None = None
    operation: str | None = None  # of a framework: `aten::mm [64, 32] x [32, 8]`
    function: str | None = None
    file: str | None = None
    line: int | None = None
    label: str | None = None  # the kernel as tables name it, with its configuration where it had several
    share: float | None = None  # that configuration's part of the GPU time (0..1)


NOWHERE = Place()


@dataclass(frozen=True)
class Construct:
    """One thing that a line of source does; ConstructKind explains the fields."""

    kind: ConstructKind
    name: str = ""
    how: str = ""


@dataclass(frozen=True)
class LineCode:
    """A line of the program's source."""

    text: str
    loop: int | None = None  # the first line of the loop around it
    constructs: tuple[Construct, ...] = ()
    into: tuple[InnerCode, ...] = ()  # the functions of the same file that it calls
    # The simple statement that begins there, of an `if` its test, with modules by their own names: `y = numpy.exp(x)`.
    statement: str = ""
    each: bool = True  # the interpreter comes to the line once for each execution of it
    beside: bool = False  # other statements stand in the loop around it, or in its function if there is none

    def find(self, kind: ConstructKind) -> tuple[Construct, ...]:
        """Return the constructs of a kind."""
        return tuple(construct for construct in self.constructs if construct.kind == kind)


@dataclass(frozen=True)
class InnerCode:
    """A function that a line calls: its first line; or, if it has only one, that line with its code."""

    function: str
    line: int
    code: LineCode | None = None


@dataclass(frozen=True)
class Variable:
    """The type that a variable was seen to have, `list` or `numpy.ndarray`.

    For built-in types, arrays and tensors, its largest length; of a pattern, the alternatives of plain
    text in its largest group.
    `first`: its length when it was seen first, where it was longer later and at no look shorter than before.
    """

    type: str
    length: int | None = None
    first: int | None = None


@dataclass(frozen=True)
class ArrayForm:
    """What a name held: for an array of NumPy its type ("<f4"), its shape and its order.

    For a number its type alone.
    """

    type: str  # "" of anything else
    shape: tuple[int, ...] | None = None
    order: str = ""  # "C", "F", or "" where it is neither
    # Bytes from an element to the nearest one; 0 where that is not known, or it is the same element.
    apart: int = 0


@dataclass(frozen=True)
class LineCount:
    """How often a line ran in the main thread, and what its names held when they were looked at.

    `parts`: for the first line in a loop, the median seconds of an iteration in each eighth of the iterations.
    """

    file: str
    line: int
    function: str
    executions: int
    looks: int = 0
    forms: Mapping[str, tuple[ArrayForm, ...]] = field(default_factory=dict)
    parts: tuple[float, ...] = ()
    # Iterations of the region in which alone was counted; 0: of several, or none was entered.
    entries: int = 0


@dataclass(frozen=True)
class SampledLoop:
    """A loop of the program under which much of its main thread's time lies, where imports do not count.

    `first` is the line of the first statement in its body, `each` as in a LineCode, and `last` where the body
    ends.
    """

    file: str
    line: int
    function: str
    first: int
    last: int
    share: float  # 0..1 of that time, which is
    seconds: float  # of the samples
    each: bool = True


@dataclass(frozen=True)
class LineSamples:
    """What was sampled in one line of the program and below it, in seconds."""

    function: str
    file: str | None
    line: int | None
    main_wall: float = 0.0  # of the first process's main thread
    main_cpu: float = 0.0
    other_wall: float = 0.0  # of all other threads and processes
    other_cpu: float = 0.0
    own: float = 0.0  # processor time in the line itself
    waits: Mapping[str, float] = field(default_factory=dict)  # of the main thread, by what it waited for
    other_waits: Mapping[str, float] = field(default_factory=dict)
    callees: tuple[CodeLine, ...] = ()  # the functions that it called
    callers: tuple[CodeLine, ...] = ()
    below: tuple[
        CodeLine, ...
    ] = ()  # functions of libraries anywhere below it that take a good part of its time
    inside: tuple[CodeLine, ...] = ()  # those of them that are public and take most of it, outermost first
    longest: float | None = None
    holds: int = 0  # how often it kept an event loop from what was ready to run, for 20 ms or more
    held: float = 0.0  # seconds of these
    crowded: float = 0.0  # seconds in which it ran in an event loop while something else was ready to
    # Share (0..1) of the trials in which it gave the interpreter's lock away by itself for a moment: samples are taken
    # there, also in place of the lines around it.
    given: float = 0.0
    threads: int = 0
    processes: int = 0
    looks: int = 0
    arguments: int | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    # processor time by rank of a distributed program
    ranks: Mapping[str, float] = field(default_factory=dict)
    rank_waits: Mapping[str, float] = field(default_factory=dict)
    collecting: float = 0.0  # the garbage collector's time in the first process, while this line ran
    code: LineCode | None = None
    caller_code: LineCode | None = None  # of the first of its callers
    within: tuple[
        CodeLine, ...
    ] = ()  # lines of the program around it, with the main thread's seconds in both
    # Of machine code that waits: how often it did (of `sync` at least), and the lines where others waited for it. Its
    # `other_waits` are those of all other threads, under no kind, but for locks.
    waited: int = 0
    each_wait: float = 0.0  # mean seconds of those
    awaited: tuple[CodeLine, ...] = ()


RegisterKind = Literal[
    "denormal",  # numbers of `number` bits are denormal where they are multiplied or divided
    "divisor",  # whole numbers are divided, each time by `number`
    "contended",  # threads change the same place in memory by turns, by atomic instructions
    "beside",  # threads write to places beside each other, in one line of the cache
    "record",  # a loop goes from record to record of `size` bytes, and uses `number` of each
    "argument",  # calls of `name` have `number` different arguments
    "exponent",  # `name` is called each time with the exponent `number` / 2
    "names",  # system calls look up files by `number` different names, in all of the program
]


@dataclass(frozen=True)
class RegisterFact:
    """What looks at the registers of a running program showed of a function of it: `looks` of `of` there.

    For calls that were watched, `of` is their number.
    """

    kind: RegisterKind
    function: str
    file: str | None
    line: int | None  # of the instruction
    looks: int
    of: int
    threads: int = 1
    number: int = 0
    size: int = 0
    name: str = ""


@dataclass(frozen=True)
class StartedProgram:
    """A program that the run starts, or copies of its first one: how many of its processes were seen, their seconds.

    `name` is that of its script or file, and `command` the word that starts it, empty for copies (a shell makes one for
    each `$(...)`). Of `seconds`, `starting` are what the processes do before their own work: a script of Python
    imports modules, others do not run their program yet. `file` and `line` are the only line of a shell's script that
    has the command.
    """

    name: str
    command: str
    starts: int
    seconds: float
    starting: float
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class SampledTime:
    """What the samples of a Python program add up to, in seconds: `wall` of its main thread, `cpu` of all threads."""

    wall: float
    cpu: float
    rest_wall: float = 0.0  # led to no line of the program: the interpreter's start, threads of libraries
    rest_cpu: float = 0.0
    collecting: float = 0.0  # the garbage collector's time in the first process
    children: int = 0  # that ran for less than half a second, where they are many: without their lines
    native: bool = False  # sampled from outside, lines of machine code
    hottest: str | None = None  # of machine code the address of most samples: `main+0x80`
    import_codes: Mapping[str, LineCode] = field(default_factory=dict)  # of lines that import, by `file:line`
    loops: tuple[SampledLoop, ...] = ()  # the outer ones first
    lines: tuple[LineSamples, ...] = ()
    # Lines that call functions of the program, with what was sampled below: their seconds are those of `lines` again.
    outer: tuple[LineSamples, ...] = ()
    # Of machine code where and for what it waited: seconds of the `span` (from the main thread's first record to its
    # last) that the main thread waited there, or that it waited for another thread which did.
    waiting: tuple[LineSamples, ...] = ()
    span: float = 0.0
    registers: tuple[RegisterFact, ...] = ()  # of machine code: what its registers held
    programs: tuple[StartedProgram, ...] = ()  # that the run started


@dataclass(frozen=True)
class Beneath:
    """What a place calls; None where calls were not counted."""

    name: str
    library: str | None = None
    calls: int | None = None
    seconds_per_call: float | None = None
    public: str | None = None  # of a function that is private to a library what is shown: its class or module


@dataclass(frozen=True)
class CodeSpot:
    """One place and its share (0..1) of the run's wall time, which is `seconds`."""

    share: float
    seconds: float
    kind: SpotKind
    where: Place = NOWHERE  # in the program's own code
    under: Beneath | None = None
    code: LineCode | None = None
    calls: int | None = None  # of the function of the place
    longest: float | None = None  # single call that was seen
    threads: int = 0  # other than the main one that spent time there
    processes: int = 0  # other than the first one
    looks: int = 0  # how often its arguments were looked at, and
    arguments: int | None = None  # how many different ones there were
    variables: Mapping[str, Variable] = field(default_factory=dict)  # that it works on
    ranks: Mapping[str, float] = field(default_factory=dict)  # seconds by rank of a distributed program
    caller: str | None = None  # `main, app.py:40`
    callers: tuple[CodeLine, ...] = ()  # the lines that call its function, in seconds of their own
    caller_code: LineCode | None = None  # of the first of them
    insight: int | None = None  # the number of the insight about it
    partial: bool = False  # calls were counted in the first part of the run alone: there are at least so many
    below: tuple[
        CodeLine, ...
    ] = ()  # functions of libraries anywhere below it; `value`: their share (0..1) of its time
    inside: tuple[CodeLine, ...] = ()  # those of them that are public and take most of it, outermost first
    beside: bool = False  # lines around it may have a part of its share, which no sample tells
    executions: int | None = None  # of the line, in all of what was counted
    starts: int = 0  # of a program that the run started: its processes that were seen
