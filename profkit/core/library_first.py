"""Put the standard library first on sys.path: a `copy.py` may lie where PYTHONPATH or `-m` looks first.

Each of profkit's processes imports this before everything else.
"""

import os
import sys

_LIBRARY = os.path.dirname(os.__file__)
# What comes from elsewhere (`profkit` itself, packages) keeps its order.
sys.path.sort(key=lambda folder: folder != _LIBRARY and os.path.basename(folder) != "lib-dynload")
