"""Operations over a grid of shapes, dtypes and directions, each case checked and timed in every implementation."""
