"""Where one side overtakes another."""
