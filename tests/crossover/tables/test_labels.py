from __future__ import annotations

from crossover.tables.labels import device_label, short_name, side_word


def test_devices_and_cpu_sides_have_labels() -> None:
    assert short_name("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz") == "Intel Xeon Gold 6248"
    assert device_label("cpu", "AMD EPYC 9D24 96-Core Processor") == "CPU (AMD EPYC 9D24)"
    assert device_label("cpu", None, "node7") == "CPU of node7"
    assert [side_word("cpu-1"), side_word("cpu-half"), side_word("cpu-half", 8), side_word("cpu", 16)] == [
        "CPU on 1 core",
        "CPU on half of its cores",
        "CPU on 8 cores (half)",
        "CPU on 16 cores",
    ]
