"""Every table and figure of the four papers, computed again and held against the print."""
