"""Tables of counts: reading them, privatizing them, packing the release."""
