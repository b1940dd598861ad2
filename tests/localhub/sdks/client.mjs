// Sends events with keys, and prints what it reads: `node client.mjs CONNECTION GROUP COUNT`.
import { createRequire } from "node:module";
import { join } from "node:path";

// Modules are looked for beside this file; the package is in the folder that NODE_PATH names.
const require = createRequire(join(process.env.NODE_PATH, "found-from-here.js"));
const { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } =
  require("@azure/event-hubs");

const [connection, group, count] = process.argv.slice(2);
const producer = new EventHubProducerClient(connection);
for (let number = 0; number < Number(count); number++) {
  await producer.sendBatch([{ body: `event ${number}` }], { partitionKey: `key ${number}` });
}
await producer.close();

const consumer = new EventHubConsumerClient(group, connection);
const { partitionIds } = await consumer.getEventHubProperties();
let seen = 0;
await new Promise((resolve, reject) => {
  consumer.subscribe(
    {
      processEvents: async (events, context) => {
        for (const event of events) {
          console.log(`${context.partitionId}/${event.partitionKey}/${event.body}`);
          if (++seen === Number(count)) resolve();
        }
      },
      processError: async (error) => reject(error),
    },
    { startPosition: earliestEventPosition },
  );
});
await consumer.close();
console.log(`partitions ${partitionIds}`);
