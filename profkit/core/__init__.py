"""Types, errors, statistics, processes and text formatting: what every other package builds on."""
