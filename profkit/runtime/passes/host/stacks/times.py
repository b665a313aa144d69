"""When samples are taken: at moments that are fixed beforehand, as many as the program can bear."""

from __future__ import annotations

from time import perf_counter

PAUSE = 0.005  # seconds between two samples, and between two looks at variables
# At first a tenth of the time so far, at least a thousandth of a second: a program of 0.03 s has some samples, too.
FIRST_PAUSE, EARLY = 0.001, 0.1
# Until so many samples, pauses are shorter and more of the program's time is taken: a share of a third that is known
# from 300 samples is off by 5 points in one run of twenty, whatever the program does. More of them change little.
ENOUGH_SAMPLES, EARLY_PAUSE = 2000, 0.0015
# Of the processor time of a program that computes, what we take with the lock held: where stacks are deep, threads many
# or caches cold, samples are taken less often. COST_WEIGHT: of one sample in what a sample usually costs.
COST_SHARE, EARLY_COST_SHARE, COST_WEIGHT = 0.02, 0.06, 0.1
# Of a deep stack the interpreter makes objects that the program has to take away: it costs that as well.
DEEP_COST = 3.0
# Of the time: a program that ran for as long has all of these samples, since those that come while it waits hold nobody
# up; one that mostly waits has half of them at least, and of a hundred idle processes ours takes no more.
RUNNING_SHARE, MIN_SAMPLED_SHARE = 0.5, 0.5
# Processor time of all threads but the busiest one, as a share of the time since the last sample: from OTHERS on they
# compete for the interpreter's lock.
OTHERS, OTHERS_WEIGHT = 0.15, 0.1
LONGEST_GAP = 1.0  # seconds whose moments are distinguished


class SamplingSchedule:
    """The moments of the samples of one process, and what decides how far they are apart."""

    __slots__ = (
        "_begun",
        "_busy",
        "_cost",
        "_early_share",
        "_others",
        "_pause",
        "_running",
        "_shake",
        "due",
        "moment",
    )

    def __init__(self, begun: float, early_share: float = EARLY_COST_SHARE) -> None:
        """Begin at a time; `early_share`: of the program's processor time, until there are enough samples."""
        self._begun = self.moment = begun  # `moment`: the last one that the present sample stands for
        self.due = begun + FIRST_PAUSE  # the next one
        self._pause, self._shake = FIRST_PAUSE, 1
        self._cost = 0.0  # processor seconds of a sample, usually
        self._busy = 0  # samples in which the program had a processor
        self._early_share = early_share
        self._running = 1.0  # processors that the program has had lately
        self._others = 0.0

    def pass_until(self, now: float) -> None:
        """Go on to the moment of the next sample; the present one stands for those until `now`.

        They are fixed beforehand: a pause that began where the lock was granted, at the end of a call, would be in step
        with the program.
        """
        due = max(self.due, now - LONGEST_GAP)  # the process may have been stopped
        while due <= now:
            self.moment = due
            self._shake = (self._shake * 25173 + 13849) % 65536
            # not in step with what the program repeats
            due += self._pause * (0.75 + 0.5 * self._shake / 65536)
        self.due = due

    def is_each(self, count: int) -> bool:
        """Return whether the present sample is one of `count`, by chance."""
        return self._shake % count == 0

    def note_computing(self, processors: float, of_others: float, *, busy: bool) -> None:
        """Note how many processors the program had since the last sample, and those of all but its busiest thread."""
        self._busy += busy
        self._running += COST_WEIGHT * (processors - self._running)
        # Threads that compete hold the lock for a whole pause now and then: one such pause says nothing.
        # What all of them computed beyond one processor was without the lock: nobody competes for it meanwhile.
        competing = max(0.0, of_others - max(0.0, processors - 1.0))
        self._others += OTHERS_WEIGHT * (competing - self._others)

    def do_threads_compete(self) -> bool:
        """Return whether several threads have lately computed what needs the lock, by turns."""
        return self._others >= OTHERS

    def note_cost(self, seconds: float, *, deep: bool) -> None:
        """Note the processor seconds of a sample, and choose the pause after it."""
        self._cost += COST_WEIGHT * (seconds * (DEEP_COST if deep else 1.0) - self._cost)
        enough = max(1.0, self._busy / ENOUGH_SAMPLES)
        if self.do_threads_compete():  # they would change places as often
            enough = PAUSE / EARLY_PAUSE
        longest = min(PAUSE, EARLY_PAUSE * enough)
        early = max(FIRST_PAUSE, min(longest, EARLY * (perf_counter() - self._begun)))
        sampled = max(MIN_SAMPLED_SHARE, min(1.0, self._running / RUNNING_SHARE))
        self._pause = max(early, self._cost / sampled / max(COST_SHARE, self._early_share / enough))
