"""What an evaluation leaves in its folder, and how it, and what other tools leave, is read again."""
