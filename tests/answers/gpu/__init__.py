"""Programs with a known problem on a GPU, and recordings of runs of them."""
