"""The report: page, Markdown, terminal."""
