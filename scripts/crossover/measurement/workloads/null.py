"""A step that does nothing, measured without torch by `null_trial`; its trials show the workflow's overhead."""

SIZE_NAME = "numbers of cells"
SIZE_RANGE = (1, 1000000)
DATASET = None
PROTOCOLS = ("resident", "as_published")
