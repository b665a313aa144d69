"""What a run or a report holds, as files for other viewers: time lines, stacks."""
