"""Files as a stranger may send them: what the readers are tried with, how, and what they must not do."""
