// A consumer of the official JavaScript client with the official store for tables: saves after each
// batch, and prints a line of JSON for each event, and for each position that it has saved.
"use strict";

const { AzureNamedKeyCredential, TableClient } = require("@azure/data-tables");
const { EventHubConsumerClient, earliestEventPosition } = require("@azure/event-hubs");
const { TableCheckpointStore } = require("@azure/eventhubs-checkpointstore-table");

const [connection, hub, url, table, account, key, expiry] = process.argv.slice(2);
const credential = new AzureNamedKeyCredential(account, key);
const client = new TableClient(url, table, credential, { allowInsecureConnection: true });
const consumer = new EventHubConsumerClient(
  "$Default",
  connection,
  hub,
  new TableCheckpointStore(client),
  {
    loadBalancingOptions: {
      strategy: "greedy",
      updateIntervalInMs: 400,
      partitionOwnershipExpirationIntervalInMs: 1000 * Number(expiry),
    },
  },
);

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

consumer.subscribe(
  {
    async processEvents(events, context) {
      for (const event of events) {
        print({ event: [context.partitionId, event.sequenceNumber] });
      }
      if (events.length > 0) {
        await context.updateCheckpoint(events[events.length - 1]);
        print({ saved: [context.partitionId, events[events.length - 1].sequenceNumber] });
      }
    },
    async processError(error) {
      print({ error: String(error) });
    },
  },
  { startPosition: earliestEventPosition, maxBatchSize: 5, maxWaitTimeInSeconds: 1 },
);
