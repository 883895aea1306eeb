"""No work, measured without torch: its trials show the overhead of the workflow (see `null_trial`)."""

SIZE_NAME = "numbers of cells"
SIZE_RANGE = (1, 1000000)
DATASET = None
PROTOCOLS = ("resident", "as_published")
