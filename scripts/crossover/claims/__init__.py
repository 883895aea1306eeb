"""Published statements held against the measurements."""
