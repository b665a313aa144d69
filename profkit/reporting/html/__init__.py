"""A run as one page that opens offline: one file per part of the page."""
