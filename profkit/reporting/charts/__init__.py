"""Charts: `marks` says what they are, `of_run`, `trend` and `series` make them, the others draw them."""
