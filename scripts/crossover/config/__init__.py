"""Config, studies, cells and claims, checked before any job starts."""
