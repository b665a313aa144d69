"""A history as static pages: an overview, a page for each workload, and a comparison of any two of its points."""
