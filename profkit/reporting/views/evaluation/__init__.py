"""An evaluation of kernels as blocks."""

from profkit.reporting.views.evaluation.view import view as view
