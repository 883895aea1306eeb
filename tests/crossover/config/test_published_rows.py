from __future__ import annotations

from pathlib import Path

import pytest

from crossover.config.published_rows import read_published_rows
from user_errors import error_line


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs.csv"


def test_results_are_converted_to_si_units(file: Path) -> None:
    file.write_text(
        '# Somebody, "a title".\n#  Read off "a chart"\n'
        "precision,batch_size,label,step_time_ms,device_used_mb,peak_allocated_mib,samples_per_s,max_abs_error\n"
        'amp-fp16,4,"fp16, small",31.5,14949,2,8.86,3.1e-3\n\n'
        "fp32,,,,,,7.75,\n"
    )
    first, second = read_published_rows(file)
    assert first == {
        "precision": "amp-fp16",
        "batch_size": 4,
        "label": "fp16, small",
        "step_time_s": pytest.approx(0.0315),
        "device_used_bytes": pytest.approx(14_949_000_000),
        "peak_allocated_bytes": 2 * 1024 * 1024,
        "samples_per_s": 8.86,
        "max_abs_error": 0.0031,
    }
    assert (second["batch_size"], second["label"], second["step_time_s"], second["samples_per_s"]) == (
        None,
        None,
        None,
        7.75,
    )


def test_a_run_may_state_its_number_of_parameters(file: Path) -> None:
    file.write_text("# Somebody (2019)\nparameters,device,step_time_ms\n703142,cpu,2\n")
    assert read_published_rows(file) == [{"parameters": 703_142, "device": "cpu", "step_time_s": 0.002}]
    file.write_text("# Somebody (2019)\nparameters,device,step_time_ms\n0.7e6,cpu,2\n")
    assert "parameters: '0.7e6' is not allowed; allowed: a whole number" in error_line(read_published_rows, file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,run_time_s\n2,1\n", "runs.csv: no line starts with '#'"),
        ("# source\n", "runs.csv: no columns; allowed: variant, protocol"),
        ("# source\nsize,seconds\n2,1\n", "runs.csv: column 'seconds' is unknown; allowed: "),
        ("# source\nsize,device\n2,cpu\n", "runs.csv: no column has results; allowed: run_time_s, "),
        ("# source\nsize,run_time_s\n\n2,1,3\n", "runs.csv: line 4: 3 fields; allowed: 2, one per column"),
        ("# source\ndevice,run_time_s\ncpu,1\ngpu,2\n", "runs.csv: line 4: device: 'gpu' is unknown; allowed: cpu,"),
        ("# source\nsize,run_time_s\n2,fast\n", "runs.csv: line 3: run_time_s: 'fast' is not allowed; allowed: a numb"),
        ("# source\nsize,run_time_s\n2.5,1\n", "runs.csv: line 3: size: '2.5' is not allowed; allowed: a whole number"),
        ("# source\nrun_time_s,run_time_min\n1,2\n", "runs.csv: columns 'run_time_s' and 'run_time_min' give"),
        (
            '# source\nlabel,run_time_s\n"open,1\nb,2\n',
            "runs.csv: line 3: not readable as CSV (unexpected end of data)",
        ),
        ("# source\nsize,run_time_s\n", "runs.csv: no line follows the columns; allowed: one line per published run"),
        ("# source\nsize,run_time_s\n2,\n", "runs.csv: line 3: no result; allowed: a line with at least one"),
    ],
)
def test_an_invalid_file_is_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    assert error_line(read_published_rows, file).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "# Größe, Zeit (2019)\nsize;device;label;run_time_s\n6;cpu;a,b;83,02\n6;cuda;;66,27\n",
        '"# Größe, Zeit (2019)";;;;\nsize;device;label;run_time_s;\n\n6;cpu;a,b;83,02;\n6;cuda;;66,27;\n;;;;\n',
        '# Größe, Zeit (2019),,,\nsize,device,label,run_time_s\n6,cpu,"a,b",83.02\n6,cuda,,66.27\n',
        "# Größe, Zeit (2019)\nsize\tdevice\tlabel\trun_time_s\n6\tcpu\ta,b\t83,02\n6\tcuda\t\t66,27\n",
    ],
)
def test_a_file_saved_by_a_spreadsheet_is_read(file: Path, text: str) -> None:
    """Spreadsheets write semicolons, decimal commas, quoted `#` lines, and empty fields at the ends of lines."""
    file.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    assert read_published_rows(file) == [
        {"size": 6, "device": "cpu", "label": "a,b", "run_time_s": 83.02},
        {"size": 6, "device": "cuda", "label": None, "run_time_s": 66.27},
    ]
