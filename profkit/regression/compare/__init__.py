"""Two runs side by side: whether they may be compared, what is different between them, and why."""

from profkit.regression.compare.outcome import deciding as deciding
from profkit.regression.compare.story import compare as compare
