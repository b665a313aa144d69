"""A generation of kernels as blocks."""

from profkit.reporting.views.generation.view import view as view
