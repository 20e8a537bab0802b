"""Tables in and out, whatever library they come from."""
