"""Readers of traces in Chrome's format."""
