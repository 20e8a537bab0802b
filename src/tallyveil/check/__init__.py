"""Release folders checked by strangers: every document is worked out again and compared."""
