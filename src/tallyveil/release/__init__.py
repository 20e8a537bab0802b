"""A release: what a publisher asks, how it is planned, drawn, written and read back."""
