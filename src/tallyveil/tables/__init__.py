"""Tables in and out, whatever library they come from.

`source.read_table` gives a `base.Table`; `counts.read_counts` reads one of its columns as
confidential counts; `categories` compares its public columns. One module per library
(`delimited`, `array`, `arrow`, `pandas`, `polars`) knows how that library holds a table.
"""
