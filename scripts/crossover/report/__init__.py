"""The report: page, Markdown summary, and terminal output."""
