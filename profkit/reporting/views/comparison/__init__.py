"""A comparison of two runs, or of several workloads, as blocks."""

from profkit.reporting.views.comparison.view import DISTURBANCES as DISTURBANCES
from profkit.reporting.views.comparison.view import looked_line as looked_line
from profkit.reporting.views.comparison.view import view as view
