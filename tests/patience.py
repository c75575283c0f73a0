"""How long a test waits for what must come: only what hangs may end it, never a busy machine."""

PATIENCE_S = 1800.0
