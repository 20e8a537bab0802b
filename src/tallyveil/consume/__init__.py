"""The people who receive a released number: what to make of it, and how little it gives away."""
