"""Small programs with one known problem each, and what an expert says of them."""
