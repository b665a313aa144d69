"""What profkit keeps of a machine from one run to the next, in the user's cache folder."""
