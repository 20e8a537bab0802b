"""Random bits and exact draws from integer weights."""
