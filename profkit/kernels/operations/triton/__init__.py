"""Our kernels in Triton: `flat.py` takes arrays as one line of numbers, `rows.py` takes whole rows."""
