"""Operations over a grid of shapes, dtypes and directions, checked and timed in every implementation."""
