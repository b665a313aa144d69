"""Which coroutine an event loop of asyncio waits for."""

from __future__ import annotations

from .contents import module_of, name_of
from .frame_locals import keeps_locals, let_go

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Container
    from types import CodeType, FrameType
    from typing import Any

MAX_TASKS = 256
MAX_SERVED = 32  # tasks that are looked at one by one: with more, nobody asks one thing at a time
_READER, _WRITER = "StreamReader", "StreamWriter"
# Where a client waits for an answer, and where servers of libraries answer a connection.
_STREAMS = ("/asyncio/streams.py", "/aiohttp/streams.py")
_SERVERS = (
    "/aiohttp/web_protocol.py",
    "/uvicorn/protocols/http/h11_impl.py",
    "/uvicorn/protocols/http/httptools_impl.py",
)


def awaited_frames(
    loop_tasks: object, own: Any = None, before: Container[object] = ()
) -> tuple[list[FrameType], bool]:
    """Return the frames of the coroutine that an event loop waits for, innermost first, and whether it is the only one.

    Of several it is the one that the loop was started with; where all but that and one other wait for locks, it is the
    other one, which holds what they wait for, and nothing else can run meanwhile. So it is of several that wait for one
    lock, if a single other task stands in the function that asked for it; where all others sleep, it is one of these.
    Tasks of a server in the same program, which wait for requests, do not count where a single other task waits for its
    answer.

    `loop_tasks` is asyncio's own set of its tasks (`_all_tasks`, or `_scheduled_tasks` from 3.12 on). Where only a part
    of its time is sampled, it is the task `own` while that is suspended, and tasks that were there `before` do not
    count.
    """
    references = list(getattr(loop_tasks, "data", ()))[:MAX_TASKS]
    tasks = [
        task for task in [reference() for reference in references] if task is not None and not task.done()
    ]
    if own is not None:
        tasks = [task for task in tasks if task is own or task.get_loop() is own.get_loop()]
    pending = [task for task in tasks if task is own or task not in before]
    few = 1 < len(pending) <= MAX_SERVED
    clients = [task for task in pending if not _serves(_suspended_frames(task))] if few else []
    if len(clients) == 1 and _reads_stream(_suspended_frames(clients[0])):
        pending = clients  # what it asks is a server in the same program, whose tasks wait for its requests
    alone = len(pending) == 1
    first = [task for task in pending if task is own or (own is None and (alone or _ends_loop(task)))]
    if len(first) != 1 or (own is not None and getattr(own.get_coro(), "cr_running", True)):
        return [], False
    frames = _suspended_frames(first[0])
    if not alone and own is None and not _waits_for_lock(frames):
        others = [each for task in pending if task is not first[0] and (each := _suspended_frames(task))]
        holders = [each for each in others if not _waits_for_lock(each)]
        if len(holders) != 1 or len(others) == 1:
            holders = _holders_of_lock(others, holders)
        if len(holders) == 1 and len(others) > 1:
            frames, alone = holders[0], True
        elif others and all(each[-1].f_code.co_name == "sleep" and len(each) > 1 for each in others):
            frames = others[0]  # nothing else is under way: where it sleeps says more than who waits for it
    return frames[::-1], alone


def _reads_stream(frames: list[FrameType]) -> bool:
    """Return whether a task waits for an answer on a connection of asyncio's streams, or of aiohttp's."""
    return bool(frames) and frames[-1].f_code.co_filename.replace("\\", "/").endswith(_STREAMS)


def _serves(frames: list[FrameType]) -> bool:
    """Return whether a task answers one connection of a server, of a library or one that asyncio's streams started.

    Of the second the coroutine was called with the two streams, and the transport of that connection is a server's.
    """
    if frames and frames[0].f_code.co_filename.replace("\\", "/").endswith(_SERVERS):
        return True
    if not frames or keeps_locals(frames[0].f_code):
        return False
    code, known = frames[0].f_code, frames[0].f_locals
    try:
        given = [known.get(name) for name in code.co_varnames[: code.co_argcount]]
    finally:
        let_go(frames[0], known)
    kinds = [f"{module_of(type(value))}.{name_of(type(value))}" for value in given]
    if f"asyncio.{_READER}" not in kinds or f"asyncio.{_WRITER}" not in kinds:
        return False
    try:
        writer = object.__getattribute__(given[kinds.index(f"asyncio.{_WRITER}")], "__dict__")
        return object.__getattribute__(writer["_transport"], "__dict__").get("_server") is not None
    except (AttributeError, KeyError):  # another implementation of the loop
        return False


def _ends_loop(task: Any) -> bool:
    """Return whether an event loop runs until this task is done: `asyncio.run` says so by a callback of the task.

    Loops of other libraries say it otherwise: there it is the first task of the program.
    """
    callbacks = getattr(task, "_callbacks", None) or ()
    names = {getattr(callback, "__name__", "") for callback, *_ in callbacks}
    return "_run_until_complete_cb" in names or task.get_name() == "Task-1"


def _suspended_frames(task: Any) -> list[FrameType]:
    """Return the frames of a task that waits, outermost first."""
    frames: list[FrameType] = []
    waits = task.get_coro()
    for _ in range(50):
        frame = getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)
        if frame is None:
            break
        frames.append(frame)
        waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
    return frames


def _holders_of_lock(others: list[list[FrameType]], running: list[list[FrameType]]) -> list[list[FrameType]]:
    """Return the tasks that stand in the function that asked for the lock for which several others wait.

    Of the lock with most of them; none where fewer than two wait. What has the lock has called the same function.
    """
    waiting: dict[int, set[CodeType]] = {}
    counts: dict[int, int] = {}
    for frames in others:
        if not _waits_for_lock(frames):
            continue
        known = frames[-1].f_locals
        lock = known.get("self")
        let_go(frames[-1], known)
        locking = next(
            (frame for frame in reversed(frames) if not frame.f_code.co_filename.endswith("locks.py")), None
        )
        if name_of(type(lock)) == "Lock" and locking is not None:
            waiting.setdefault(id(lock), set()).add(locking.f_code)
            counts[id(lock)] = counts.get(id(lock), 0) + 1
    most = max(counts, key=lambda lock_id: counts[lock_id], default=0)
    if counts.get(most, 0) < 2:
        return []
    return [frames for frames in running if any(frame.f_code in waiting[most] for frame in frames)]


def _waits_for_lock(frames: list[FrameType]) -> bool:
    """Return whether the innermost frame that waits is that of asyncio's lock, or of a semaphore."""
    code = frames[-1].f_code if frames else None
    return code is not None and code.co_name == "acquire" and code.co_filename.endswith("locks.py")
