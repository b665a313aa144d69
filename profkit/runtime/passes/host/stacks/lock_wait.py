"""How long the sampling thread waits for the interpreter's lock until it asks for it, and how long it may keep it.

CPython has one time for both, and for all threads: the switch interval. A thread that waits for the lock asks the one
that has it to give it away after that time. We set it for our own waits and for our samples; between the two, and at
the end, the program has its own.
"""

from __future__ import annotations

import sys

# Seconds. After the usual 5 ms we would meet most programs at a call that gives the lock away by itself. Not where
# several threads compute at a time, since they would change places as often; a server and its client in one process
# take turns.
# We ask again and again for as long as a call of C keeps the lock. So we wait as short as we can without spending
# more than ASKING seconds of a processor on that for a sample; a loop of 0.1 ms that ends in `epoll_wait` was met in it
# 95 times of 100 where each wait took 0.2 ms, and once where it took 0.02 ms.
SHORTEST_SWITCH, SHORT_SWITCH = 2e-5, 2e-4
ASKING, ASKING_WEIGHT, SHORTER = 1.5e-4, 0.02, 0.8
# Threads that compete and often give the lock away by themselves change places as often as this: a sample that asks
# sooner than they do costs them little, and is met less at that call.
TURN_SWITCH = 1e-3
# Seconds after which the program may ask for the lock back while a sample is taken, where it is more than we wait
# ourselves: a little more than a sample takes. With 0.02 ms two of three samples were taken in turns with the program,
# at twice the cost. Where we do lose the lock within a sample, we have to wait for as long ourselves to have it back.
# A program of one thread without an event loop has nobody to wait for: it asks after CPython's own time. It lost up
# to 5 points of a long call of C, which it began within a sample, to the line behind it. With an event loop, calls that
# give the lock away have 2 to 6 points too much after 5 ms.
WHOLE_SAMPLE, WHOLE_OF_ONE = 5e-4, 5e-3
SAME = 2e-6  # CPython keeps whole microseconds


class LockWait:
    """The switch interval of this process, as the program set it and as we do."""

    __slots__ = ("_asking", "_kept", "_present", "_short", "_waited", "program")

    def __init__(self) -> None:
        self._present = -1.0  # as we set it last; nothing yet
        self.program = 0.0
        self.begin()

    def begin(self) -> None:
        """Take what is set for the program's own, and ask as soon as we may; in a forked child it may be ours."""
        if abs((present := sys.getswitchinterval()) - self._present) > SAME:
            self.program = self._present = present
        self._short, self._asking = SHORTEST_SWITCH, 0.0
        self._kept, self._waited = self.program, SHORTEST_SWITCH
        self.ask()  # until the first look at the threads

    def end(self) -> None:
        """Leave the program its own time, whatever is called after this."""
        self._set(self.program)
        self._kept = self._waited = self.program

    def choose(self, *, alone: bool, lone: bool, often: bool, loops: bool) -> None:
        """Choose the times of the next sample.

        `alone`: threads do not compete; `lone`: no other one has run lately; `often`: those that compete give the lock
        away often by themselves; `loops`: an event loop runs in the main thread.
        """
        competing = min(TURN_SWITCH, self.program) if often else self.program
        self._waited = (self._short if lone else SHORT_SWITCH) if alone else competing
        self._kept = max(WHOLE_OF_ONE if alone and lone and not loops else WHOLE_SAMPLE, self._waited)

    def spent(self, seconds: float) -> None:
        """Note the processor seconds that it took to ask for the lock of a sample."""
        self._asking = max(self._asking + ASKING_WEIGHT * (seconds - self._asking), 1e-6)
        # Longer at once, shorter step by step: one long call costs more than many samples that come a little late.
        change = max(SHORTER, self._asking / ASKING)
        self._short = min(SHORT_SWITCH, max(SHORTEST_SWITCH, self._short * change))

    def keep(self) -> float:
        """Keep the lock that we have just been given, and return the seconds after which we had asked for it.

        The first thing to do with it: the thread that gave it away wakes up at the same moment, and waits for as long
        as is set then. It may be faster than we are, so what must be of one moment is read in one call of C.
        """
        present, waited = sys.getswitchinterval(), self._present
        sys.setswitchinterval(self._kept)
        self._present = self._kept
        if abs(present - waited) > SAME:
            self.program = present
        return waited

    def ask(self, seconds: float | None = None) -> None:
        """Ask for the lock after some seconds, as chosen, wherever we give it away from here on."""
        self._set(self._waited if seconds is None else seconds)

    def _set(self, seconds: float) -> None:
        present = sys.getswitchinterval()
        if abs(present - self._present) > SAME:
            self.program = present
        self._present = seconds
        if abs(present - seconds) > 1e-7:
            sys.setswitchinterval(seconds)
