"""Run two versions of a program alternately: is one slower, by how much, and which change caused it."""

from profkit.profiling.plain_run import RunOptions as RunOptions
from profkit.regression.paired.checkout import CheckoutSpec as CheckoutSpec
from profkit.regression.paired.compare_versions import VersionsRequest as VersionsRequest
from profkit.regression.paired.compare_versions import VersionsResult as VersionsResult
from profkit.regression.paired.compare_versions import compare_versions as compare_versions
from profkit.regression.paired.interleave import FLOOR as FLOOR
from profkit.regression.paired.interleave import PairedOptions as PairedOptions
