"""Charts: `marks` says what they are, `trend` makes them, `draw` draws them."""
