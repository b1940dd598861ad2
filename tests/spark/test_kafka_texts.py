import pytest

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark import EventPosition, StartingPositions

START, END = EventPosition.from_start_of_stream(), EventPosition.from_end_of_stream()


def test_kafkas_numbers_and_its_two_words_are_read():
    found = StartingPositions.from_kafka('{"my-hub":{"0":124,"1":-2,"2":-1}}', "my-hub")
    assert found.eventhub_name == "my-hub"
    assert found.positions == {
        "0": EventPosition.from_sequence_number(123),
        "1": START,
        "2": END,
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "startingPositions is not JSON"),
        ("[]", "not a JSON object"),
        ('{"My-Hub":{"0":1}}', "does not name topic 'my-hub'; it names 'My-Hub'"),
        ('{"my-hub":5}', "does not name topic 'my-hub'"),
        ('{"my-hub":{"0":-3}}', "-3 is not an offset"),
        ('{"my-hub":{"0":"5"}}', "'5' is not an offset"),
        ('{"my-hub":{"0":true}}', "True is not an offset"),
        ('{"my-hub":{"all":5}}', "'all' is not a partition"),
    ],
)
def test_what_kafka_would_not_take_is_refused_with_a_reason(text, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        StartingPositions.from_kafka(text, "my-hub")
