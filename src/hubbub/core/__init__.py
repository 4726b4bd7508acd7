"""Pure foundations: exact numbers, directed rounding, privacy loss, events. No I/O here."""
