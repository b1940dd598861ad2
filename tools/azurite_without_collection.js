// Loaded before Azurite: its collector never runs.
//
// Every ten minutes Azurite deletes what no blob refers to any more, and answers nobody meanwhile:
// 38 s for 1,300 deleted blobs on a busy machine, longer than any time limit of a store. No option
// turns that off. Source: Azurite 3.35.0, src/blob/gc/BlobGCManager.ts, `markSweepLoop`.
"use strict";

const path = require("node:path");

const LONGEST_TIMER_MS = 2 ** 31 - 1;
const constants = require(path.join(path.dirname(process.argv[1]), "utils", "constants.js"));
if (!("DEFAULT_GC_INTERVAL_MS" in constants)) {
  throw new Error("this Azurite has no DEFAULT_GC_INTERVAL_MS: how is its collector stopped?");
}
constants.DEFAULT_GC_INTERVAL_MS = LONGEST_TIMER_MS;
