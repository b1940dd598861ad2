"""A query that is killed at its second batch: `killed.py HUB DATABASE SCOPE TABLE FOLDER STAGE`."""

import json
import os
import signal
import sys

from sqlalchemy import text

import spark_runs
from eventhub_checkpoints import Scope
from eventhub_checkpoints.spark.exactly_once import ExactlyOnce

hub, database, scope, table, folder, stage = sys.argv[1:]


def die_at(here: str, calls: list[str]) -> None:
    """End as by the power: no handler, no farewell to the database. The JVM ends with us."""
    calls.append(here)
    if here == stage and calls.count(here) == 2:
        os.kill(os.getpid(), signal.SIGKILL)


calls: list[str] = []


def write(connection, rows):
    values = [{"part": row.partition, "number": row.sequenceNumber} for row in rows]
    connection.execute(text(f"INSERT INTO {table} (part, number) VALUES (:part, :number)"), values)
    die_at("in the transaction", calls)


sink = ExactlyOnce(database, Scope(*json.loads(scope)), write)


def run(batch, batch_id):
    sink(batch, batch_id)
    die_at("behind the commit", calls)


with spark_runs.session(settings=spark_runs.QUICK) as session:
    stream = session.readStream.format("eventhubs").options(
        connectionString=hub, maxEventsPerTrigger="20"
    )
    query = stream.load().writeStream.foreachBatch(run)
    query.option("checkpointLocation", folder).start().awaitTermination(180)
