"""A series of nights in, a verdict on the last one out: pure functions, no processes and no clock.

What pairs said of a night is handed in (`confirmed`: the id of an entry to the word of its re-run), and the accepted
changes; a night depends on these and on the series alone.
"""

from profkit.regression.detection.decide import decide as decide
from profkit.regression.detection.decide import is_candidate as is_candidate
from profkit.regression.detection.rules import NightRule as NightRule
from profkit.regression.detection.rules import rule_for as rule_for
from profkit.regression.detection.segments import segments_of as segments_of
