"""A step on a device: precision, execution, task, and the numerical check of its result."""
