"""Replacement for a measuring script in a run that compares a device with itself.

It runs the real script, `real_NAME.py` in the same folder, on the device named in the file `same_device`. The output
then names the device that the job requested.
"""

import runpy
import sys
from pathlib import Path

import pyarrow.parquet

from crossover.files import atomic_path

script = Path(__file__)
real = (script.parent / "same_device").read_text().strip()
requested = next(word.removeprefix("--device=") for word in sys.argv if word.startswith("--device="))
output = next(Path(word.removeprefix("--output=")) for word in sys.argv if word.startswith("--output="))
sys.argv = [f"--device={real}" if word.startswith("--device=") else word for word in sys.argv]
runpy.run_path(str(script.with_name(f"real_{script.name}")), run_name="__main__")
if requested != real:
    if output.suffix == ".parquet":
        table = pyarrow.parquet.read_table(output)
        column = table.schema.get_field_index("device")
        table = table.set_column(
            column, table.schema.field(column), pyarrow.array([requested], table.schema.field(column).type)
        )
        with atomic_path(output) as path:
            pyarrow.parquet.write_table(table, path, use_dictionary=False, write_statistics=False)
    else:
        text = output.read_text().replace(f'"device": "{real}"', f'"device": "{requested}"')
        with atomic_path(output) as path:
            path.write_text(text)
