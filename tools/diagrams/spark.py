"""The three ways in which a Spark job starts where consumers have stopped."""

from diagrams.drawing import Drawing, Palette

NAME = "spark"
TITLE = (
    "A store's checkpoints become starting positions in three ways: to_source for format "
    "eventhubs, in Python on Spark 4; to_kafka for Spark's Kafka source, on any Spark; "
    "to_connector for the JVM connector, on Spark 2.4 to 3.5. CheckpointPublisher writes the "
    "progress of the query back to the store."
)
WIDTH, HEIGHT = 520, 330
TOP, BOTTOM = 2, 252
STORE, SOURCE, QUERY = (4, 92), (206, 408), (440, 516)
"""Left and right of the three columns."""
WAYS = (
    ("to_source()", "first", ('format("eventhubs")', "Spark 4, Python only")),
    ("to_kafka()", "second", ('format("kafka")', "any Spark, its jar")),
    ("to_connector()", "muted", ("JVM connector", "Spark 2.4 to 3.5, its jar")),
)
ROW = 74


def draw(palette: Palette) -> str:
    """Return the picture in the colours of a palette."""
    drawing = Drawing(WIDTH, HEIGHT, palette, TITLE)
    middle = (TOP + BOTTOM) / 2
    for (left, right), words, color in (
        (STORE, ("store", "with", "check-", "points"), "store"),
        (QUERY, ("your", "query"), "store"),
    ):
        fill = "store_fill" if (left, right) == STORE else "paper"
        drawing.box(left, TOP, right - left, BOTTOM - TOP, color=color, fill=fill)
        drawing.lines((left + right) / 2, middle, words, anchor="middle")
    for number, (method, color, words) in enumerate(WAYS):
        y = TOP + ROW / 2 + number * (BOTTOM - TOP - ROW) / (len(WAYS) - 1)
        left, right = SOURCE
        fill = "paper" if color == "muted" else f"{color}_fill"
        drawing.box(left, y - ROW / 2, right - left, ROW, color=color, fill=fill)
        drawing.text((left + right) / 2, y - 11, words[0], anchor="middle", bold=True)
        drawing.text((left + right) / 2, y + 12, words[1], anchor="middle", size=13)
        drawing.text((STORE[1] + left) / 2, y - 14, method, anchor="middle", size=13)
        drawing.line((STORE[1] + 4, y), (left - 4, y), color=color, arrow=True)
        drawing.line((right + 4, y), (QUERY[0] - 4, y), color=color, arrow=True)
    low = BOTTOM + 36
    query, store = sum(QUERY) / 2, sum(STORE) / 2
    drawing.line(
        (query, BOTTOM), (query, low), (store, low), (store, BOTTOM + 3), color="store", arrow=True
    )
    drawing.text((query + store) / 2, low + 18, "CheckpointPublisher: progress", anchor="middle")
    return drawing.svg()
