"""Charts: `axes` and `chart_blocks` say what they are, `of_run`, `trend` and `series` make them, others draw them."""
