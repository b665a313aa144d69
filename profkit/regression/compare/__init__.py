"""Two runs side by side: whether they may be compared, what is different between them, and why."""

from profkit.regression.compare.comparison import compare as compare
from profkit.regression.compare.outcome import deciding_changes as deciding_changes
