"""Files and folders that others may have made, or may change while we work: how they are opened, read and written."""
