"""The sign of the project: partitions that have been read up to a checkpoint."""

LANES = ((5, 17), (11, 13), (17, 15))
"""Where each partition lies, and how far it has been read."""
EDGE = 21


def sign(done: str, ahead: str, flag: str) -> list[str]:
    """Return the elements of the sign, which is 24 wide and high.

    Args:
        done: colour of what has been read.
        ahead: colour of what has not.
        flag: colour of the checkpoints.
    """
    parts = []
    for y, end in LANES:
        parts.append(line(3, EDGE, y, ahead))
        parts.append(line(3, end, y, done))
        parts.append(f'<circle cx="{end}" cy="{y}" r="2.4" fill="{flag}"/>')
    return parts


def line(start: float, end: float, y: float, color: str) -> str:
    """Return a horizontal line with round ends."""
    return (
        f'<path d="M{start:g} {y:g}H{end:g}" stroke="{color}" stroke-width="2.4" '
        'stroke-linecap="round"/>'
    )


def logo() -> str:
    """Return the sign in white, for the bar at the top of the pages."""
    return framed(sign("#fff", "#ffffff66", "#ffb877"))


def favicon() -> str:
    """Return the sign on a ground of its own, for the tab of a browser."""
    ground = '<rect width="24" height="24" rx="5" fill="#0f3d5c"/>'
    return framed([ground, *sign("#fff", "#ffffff66", "#ffb877")])


def framed(parts: list[str]) -> str:
    """Return a file with these elements."""
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="24" height="24">'
    return "\n".join((head, "<title>eventhub-checkpoints</title>", *parts, "</svg>", ""))
