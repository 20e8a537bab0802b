"""Draw from what was proved, and keep account of what it cost."""
