"""Which commit made it slower: a search whose steps may be wrong, and which says how probable its answer is."""

from profkit.regression.bisect.run import BisectRequest as BisectRequest
from profkit.regression.bisect.run import bisect as bisect
from profkit.regression.bisect.run import exit_code as exit_code
from profkit.regression.bisect.run import plan_bisect as plan_bisect
from profkit.regression.bisect.run import resume as resume
