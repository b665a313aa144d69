"""Let `python -m profkit` do the same as `profkit`."""

from profkit.cli import main

main()
