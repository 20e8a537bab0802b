"""One transaction from a table to a release folder, for every caller."""
