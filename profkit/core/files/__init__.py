"""Open, read and write files and folders that others may have made, or may change while profkit works."""
