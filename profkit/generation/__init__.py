"""Let a language model write kernels, and tell it from their evaluation what to change."""
