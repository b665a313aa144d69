"""Tests, intervals of ratios, and corrections for many looks: pure functions on samples."""

from profkit.inference.many import benjamini_hochberg as benjamini_hochberg
from profkit.inference.many import benjamini_yekutieli as benjamini_yekutieli
from profkit.inference.many import coverage_of_selected as coverage_of_selected
from profkit.inference.ranks import mann_whitney as mann_whitney
from profkit.inference.ranks import shift as shift
from profkit.inference.ranks import shift_interval as shift_interval
from profkit.inference.ratio import Ratio as Ratio
from profkit.inference.ratio import ratio_of as ratio_of
