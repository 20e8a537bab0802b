"""Tables in and out, from and to any library.

`read.read_table` gives a `table.Table`, which holds every table in Arrow; `counts.read_counts`
reads one of its columns as confidential counts; `microdata` counts rows into public categories;
`write` has the two forms of a data file, and `published` reads no other from a stranger.
"""
