"""The least work that an operation of a framework needs, by the shapes and the types of its arguments."""
