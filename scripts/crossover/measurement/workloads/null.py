"""Nothing: a step without work, measured without torch. What its trials take is what the workflow itself takes.

It tells what the workflow costs, and there is nothing to build: see `null_trial`.
"""

SIZE_NAME = "numbers of cells"
SIZE_RANGE = (1, 1000000)
DATASET = None
PROTOCOLS = ("resident", "as_published")
