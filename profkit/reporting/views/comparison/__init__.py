"""A comparison of two runs, or of several workloads, as blocks."""

from profkit.reporting.views.comparison.changes import DISTURBANCES as DISTURBANCES
from profkit.reporting.views.comparison.changes import looked_line as looked_line
from profkit.reporting.views.comparison.view import comment as comment
from profkit.reporting.views.comparison.view import suite_view as suite_view
from profkit.reporting.views.comparison.view import view as view
