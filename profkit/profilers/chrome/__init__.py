"""Traces in Chrome's format."""
