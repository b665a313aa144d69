"""A sweep as blocks."""

from profkit.reporting.views.sweep.view import view as view
