"""What is asked: the options of a release, checked before any table is open."""
