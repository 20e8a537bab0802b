"""The methods of release, one module each."""
