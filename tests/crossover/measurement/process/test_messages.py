from __future__ import annotations

import os

from crossover.measurement.process.messages import Inbox, send


def test_messages_arrive_whole_and_in_order() -> None:
    reader, writer = os.pipe()
    inbox = Inbox(reader)
    os.write(writer, b'{"a": 1}\n{"b"')
    assert list(inbox.read()) == [{"a": 1}]
    os.write(writer, b": 2}\n")
    send(writer, {"c": "ü\n"})
    assert list(inbox.read()) == [{"b": 2}, {"c": "ü\n"}]
    os.close(writer)
    assert list(inbox.read()) == []
    assert inbox.closed
    os.close(reader)
