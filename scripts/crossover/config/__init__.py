"""What is asked: configuration, studies, cells and claims, checked before any job starts."""
