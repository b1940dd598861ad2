"""A store in another place than before: a forked process, or the next event loop."""


def test_writes_wait_for_each_other_in_every_event_loop(aio_store, make_fault) -> None:
    aio_store.faults.always["write_checkpoint"] = make_fault(seconds=2)
    for _ in range(2):
        with aio_store.another_loop():
            for call in [aio_store.begin_update(number) for number in range(4)]:
                aio_store.ended(call)
    assert aio_store.faults.most == 1


def test_the_next_event_loop_knows_what_this_store_wrote(aio_store) -> None:
    aio_store.update(5)
    with aio_store.another_loop():
        aio_store.update(3)  # below its own row, which is no other writer's
    assert aio_store.stored() == 3


def test_a_store_is_opened_again_in_another_event_loop_and_not_in_the_same(aio_store) -> None:
    for number in range(3):
        aio_store.update(number)
    with aio_store.another_loop():
        for number in range(3):
            aio_store.update(number)
    assert aio_store.faults.count("open") == 2
