"""What the rules ask: plain functions of plain values."""
