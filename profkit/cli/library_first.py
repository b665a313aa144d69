"""Imported before all else: a `copy.py` of the workload may lie where PYTHONPATH or `python -m` looks first."""

import sys

from profkit.runtime.passes.host.own_library import FOLDERS

# What comes from elsewhere (`profkit` itself, packages) keeps its order.
sys.path.sort(key=lambda folder: folder not in FOLDERS)
