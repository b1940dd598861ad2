"""Lists of blobs, as the service sends them."""

from xml.sax.saxutils import escape

import pytest
from azure.core.exceptions import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.stores.blob.rest import Page, PageParser

BLOB = (
    "<Blob><Name{encoded}>{name}</Name><Properties>"
    "<Last-Modified>Mon, 23 Nov 2026 08:00:00 GMT</Last-Modified><Etag>0x8D{number}</Etag>"
    "<Content-Length>0</Content-Length></Properties><Metadata>{pairs}</Metadata></Blob>"
)


def page(names: list[str], marker: str = "") -> bytes:
    blobs = "".join(
        BLOB.format(
            encoded="",
            name=escape(name),
            number=number,
            pairs=f"<ownerid>{escape(name)}</ownerid><Empty/>",
        )
        for number, name in enumerate(names)
    )
    text = (
        '\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs>'
        f"{blobs}</Blobs><NextMarker>{escape(marker)}</NextMarker></EnumerationResults>"
    )
    return text.encode()


def parsed(data: bytes, size: int) -> Page:
    parser = PageParser()
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
    return parser.close("today")


xml_names = st.text(
    st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\x7f\ufffe\uffff\r"),
    min_size=1,
    max_size=20,
)


@given(names=st.lists(xml_names, max_size=12), size=st.integers(1, 400))
def test_a_list_is_the_same_in_slices_of_any_size(names: list[str], size: int) -> None:
    found = parsed(page(names, "next <&>"), size)
    assert [blob.name for blob in found.blobs] == names
    assert [blob.metadata for blob in found.blobs] == [
        {"ownerid": name, "Empty": ""} for name in names
    ]
    assert [blob.etag for blob in found.blobs] == [f"0x8D{n}" for n in range(len(names))]
    assert all(blob.last_modified.timestamp() == 1795420800.0 for blob in found.blobs)
    assert found.marker == "next <&>"


def test_a_name_that_xml_cannot_hold_is_decoded() -> None:
    text = BLOB.format(encoded=' Encoded="true"', name="a%01%25", number=1, pairs="")
    found = parsed(f"<EnumerationResults>{text}</EnumerationResults>".encode(), 1000)
    assert [blob.name for blob in found.blobs] == ["a\x01%"]
    assert found.marker == ""


@pytest.mark.parametrize(
    "body",
    [
        b"<html><p>log in</html>",
        page(["a"])[:-30],
        b"",
        b'<?xml version="1.0" encoding="of nobody"?><EnumerationResults/>',
        b'<?xml version="1.0" encoding="shift_jis"?><EnumerationResults/>',
    ],
)
def test_what_is_not_a_list_is_an_error(body: bytes) -> None:
    with pytest.raises(DecodeError, match="not XML"):
        parsed(body, 16)


def test_a_blob_with_a_damaged_time_spoils_no_other() -> None:
    text = page(["a", "b"]).replace(b" GMT", b" o'clock", 1)
    found = parsed(text, 1000)
    assert [blob.name for blob in found.blobs] == ["a", "b"]
