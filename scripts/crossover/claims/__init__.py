"""Published statements, checked against the measurements."""
