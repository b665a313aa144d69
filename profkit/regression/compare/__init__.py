"""Compare two runs: may they be compared, what is different between them, and why."""

from profkit.regression.compare.cases import compare_evaluations as compare_evaluations
from profkit.regression.compare.comparison import compare as compare
from profkit.regression.compare.outcome import CompareOptions as CompareOptions
from profkit.regression.compare.outcome import deciding_changes as deciding_changes
