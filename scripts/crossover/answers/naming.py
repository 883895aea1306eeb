"""Moved to `crossover.tables.labels`."""

from crossover.tables.labels import NAMED_AXES as NAMED_AXES
from crossover.tables.labels import name_by as name_by
from crossover.tables.labels import varying as varying
