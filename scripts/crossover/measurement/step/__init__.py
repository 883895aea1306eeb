"""A step on a device: precision, execution, task, and whether its answer is right."""
