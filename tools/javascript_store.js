// Calls the official JavaScript store for tables: a JSON object {method, args} in each line of
// standard input, and its result or its error in a line of standard output.
"use strict";

const readline = require("node:readline");
const { AzureNamedKeyCredential, TableClient } = require("@azure/data-tables");
const { TableCheckpointStore } = require("@azure/eventhubs-checkpointstore-table");

const [url, table, account, key] = process.argv.slice(2);
const credential = new AzureNamedKeyCredential(account, key);
const client = new TableClient(url, table, credential, { allowInsecureConnection: true });
const store = new TableCheckpointStore(client);

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const { method, args } = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await store[method](...args)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
