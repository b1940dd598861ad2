"""The parts of a program with this package, each above those that it calls."""

from diagrams.drawing import Drawing, Palette

NAME = "layers"
TITLE = (
    "From top to bottom: your code; the client of azure-eventhub, consume_batches, or Spark; what "
    "decides when to save: EventProcessor, Checkpointer, CoalescingCheckpointStore; HandoverStore; "
    "the store, with claims, checkpoints, retries and time limits; the backend. Beside them, the "
    "command ehcp, its page and metrics read and change the same rows."
)
WIDTH = 520
LEFT, RIGHT = 124, 516
ROW, STEP = 52, 62
LAYERS = (
    ("your code", "first", ("a handler, a class, a batch loop,", "a Spark job")),
    ("client", "first", ("EventHubConsumerClient,", "consume_batches, Spark's source")),
    ("when to save", "second", ("EventProcessor, Checkpointer,", "CoalescingCheckpointStore")),
    ("hand-over", "second", ("HandoverStore: asks the owner first",)),
    ("store", "store", ("claims, checkpoints that never go", "back, retries, time limits")),
    ("backend", "store", ("Blob, Table, PostgreSQL, MySQL, SQLite,", "Redis, Cassandra, or yours")),
)
OPERATORS = ("ehcp, its page in the browser, metrics:", "they read and change the same rows")


def draw(palette: Palette) -> str:
    """Return the picture in the colours of a palette."""
    drawing = Drawing(WIDTH, STEP * (len(LAYERS) + 1) + 12, palette, TITLE)
    middle = (LEFT + RIGHT) / 2
    for number, (name, color, words) in enumerate(LAYERS):
        y = 2 + ROW / 2 + number * STEP
        drawing.text(0, y, name, color=color, bold=True)
        drawing.box(LEFT, y - ROW / 2, RIGHT - LEFT, ROW, color=color, fill=f"{color}_fill")
        drawing.lines(middle, y, words, anchor="middle")
        if number:
            top = y - ROW / 2
            drawing.line((middle, top - STEP + ROW), (middle, top), color="muted", arrow=True)
    y = 2 + ROW / 2 + len(LAYERS) * STEP + 8
    drawing.text(0, y, "operators", color="muted", bold=True)
    drawing.box(LEFT, y - ROW / 2, RIGHT - LEFT, ROW, color="muted", dashed=True)
    drawing.lines(middle, y, OPERATORS, anchor="middle")
    top = y - ROW / 2
    drawing.line((middle, top), (middle, top - STEP + ROW - 8), color="muted", arrow=True)
    return drawing.svg()
