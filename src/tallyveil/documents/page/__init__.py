"""The pages of a release: the public methodology and the confidential comparison."""
