"""A folder for PYTHONPATH: its `sitecustomize` is what a Python runs at its start, before the program."""
