"""A nightly as blocks."""

from profkit.reporting.views.night.view import view as view
