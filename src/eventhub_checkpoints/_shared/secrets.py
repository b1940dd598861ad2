"""Removal of secrets from values and strings that are shown in messages."""

import re
import sys

MASK = "***"
LONGEST = 1000
"""Characters of a message of others that are shown."""
SEARCHED = 100_000
"""Characters of a message that are searched, which takes 20 ms, where all of it has to be known."""
MARGIN = 4096
"""Characters after those shown that are searched too, for a secret that the cut would split: more
than a signature, a token or a key in base64 has.
"""
# Strings, which `re` compiles when they are first used: most programs show no value.
IN_TEXT = r"""(?ix)
    (://[^:/?\#\s@]*:) \S{0,300}@
    | \b((?:\w*(?:key|signature|password|passwd|pwd|secret|token)|sig)(?:=|%3D)
        | SharedKey\ [\w-]+: | Bearer\ ) [^&;\s'")]+"""
USER = r"""(?ix)
    (?::|%3A) (?:/|%2F){2} [^:%]* (?::|%3A)
    | (?<!\w) b?['"] [^:/%'"]* (?::(?!//)|%3A(?!%2F))"""
"""Matches the part of a URL before its password, with or without a scheme."""
NAMED_SECRET = r"""(?ix)
    (?:shared_?access_?(?:key|signature) | (?:account|access|api|storage)[ _-]?key
        | (?<![a-z])sig | pass(?:word|wd|phrase)? | pwd | secret | token | credentials?
        | authorization)
    [\\"']* \s* (?:=|:|%3D) | bearer(?:\s|%20|\+)"""
BARE_SECRET = r"""(?x)
    (?<![\w+/%-]) (?:
        eyJ[\w-]{8,}\.[\w.-]*               # a JSON Web Token
        | [\w+/%-]{40,} (?:=|%3[Dd])+ )     # a key of 256 bits or more in base64"""


def quoted(value: object, limit: int = 100) -> str:
    """Return the `repr` of a value for a message, without secrets, of at most `limit` characters.

    The password of a URL is masked. From the first other secret on, the rest of the value is
    masked, because the end of a secret cannot be found reliably. Secrets are keys, signatures,
    passwords and tokens with their names (`SharedAccessKey=`, `sig=`, `'password': `, `Bearer `),
    keys in base64, and JSON Web Tokens.
    """
    try:
        text = repr(value)
    except Exception:  # for example an int with more digits than Python converts
        return f"<{type(value).__qualname__}>"
    quote = text[-1:] if text[-1:] in ("'", '"') else ""
    # Cut first: to search 10 MB takes seconds, in which an event loop stands still.
    is_cut = len(text) > limit + MARGIN
    if is_cut:
        text = text[: limit + MARGIN]
    named, bare, user = (re.search(each, text) for each in (NAMED_SECRET, BARE_SECRET, USER))
    starts = named and named.end(), bare and bare.start()
    cuts = [start for start in starts if start is not None]
    cut = min(cuts, default=len(text))
    # Up to the last @: a password that is not percent-encoded may contain any other delimiter.
    at = max(text.rfind("@"), text.rfind("%40"))
    rest = MASK + quote if cuts else ""
    if user is not None and user.end() <= min(at, cut):
        text = text[: user.end()] + (MASK + text[at:cut] + rest if at < cut else rest)
    else:
        text = text[:cut] + rest
    if is_cut and not cuts:
        text = without_split_secret(text) + "..."
    return text if len(text) <= limit else text[: limit - 3] + "..."


def masked(text: str, limit: int = LONGEST) -> str:
    """Return a driver's or server's message without the secrets that it repeats.

    Unlike in `quoted`, a secret ends here at the next delimiter. Of a longer message, the first
    `limit` characters are returned, and `...`.
    """
    is_cut = len(text) > limit + MARGIN
    if is_cut:
        text = text[: limit + MARGIN]
    text = re.sub(
        IN_TEXT, lambda match: f"{match[1]}{MASK}@" if match[1] else match[2] + MASK, text
    )
    text = re.sub(BARE_SECRET, MASK, text)
    if is_cut:
        text = without_split_secret(text)
    return f"{text[:limit]}..." if is_cut or len(text) > limit else text


def without_split_secret(text: str) -> str:
    """Return a text that was cut, without its end, which may be a part of a secret.

    Masks are shorter than secrets, so the end may be among the characters to show.
    """
    return text[:-MARGIN]


def repeats_secret(text: str) -> bool:
    """Return whether `masked` would mask a part of a message, or it is too long to tell."""
    return len(text) > SEARCHED or masked(text, SEARCHED) != text


def holds_secret(text: str) -> bool:
    """Return whether `quoted` would mask a part of the string."""
    return quoted(text, sys.maxsize) != repr(text)


def without_secret(text: str) -> str:
    """Return a name for a message: as it is, or `quoted` if it holds a secret."""
    return quoted(text) if holds_secret(text) else text
