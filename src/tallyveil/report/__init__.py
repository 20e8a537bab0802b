"""Documents about a release: the public methodology and the confidential comparison."""
