"""The studio: releases made, checked and read in a browser, by the same transaction."""
