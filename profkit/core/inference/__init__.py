"""Tests, intervals of ratios, and corrections for many looks: pure functions on samples."""

from profkit.core.inference.decide import Interval as Interval
from profkit.core.inference.decide import course_of as course_of
from profkit.core.inference.decide import decide as decide
from profkit.core.inference.decide import ratio_interval as ratio_interval
from profkit.core.inference.decide import ratio_of_values as ratio_of_values
from profkit.core.inference.ranks import benjamini_hochberg as benjamini_hochberg
from profkit.core.inference.ranks import coverage_of_selected as coverage_of_selected
from profkit.core.inference.ranks import mann_whitney as mann_whitney
from profkit.core.inference.ranks import shift_interval as shift_interval
from profkit.core.inference.ranks import signed_rank_interval as signed_rank_interval
from profkit.core.inference.ratio import Ratio as Ratio
from profkit.core.inference.ratio import ratio_of as ratio_of
