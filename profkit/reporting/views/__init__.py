"""One module for each kind of result: the result in, its `View` out."""
