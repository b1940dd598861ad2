// Answers questions as the search field of the built site does, with the worker that the site itself
// has: node search.js WORKER INDEX, with an array of questions on standard input. It prints an array
// with the addresses of the pages that each question finds, best first.
const { readFileSync } = require("node:fs");

const [worker, index] = process.argv.slice(2);
const questions = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
let receive;
globalThis.self = globalThis;
globalThis.addEventListener = (kind, listener) => (receive = listener);
let answered;
globalThis.postMessage = (message) => answered(message.data);
const ask = (message) =>
  new Promise((resolve) => {
    answered = resolve;
    receive({ data: message });
  });

new Function("globalThis", readFileSync(worker, "utf8"))(globalThis);

(async () => {
  const { config, docs } = JSON.parse(readFileSync(index, "utf8"));
  await ask({ type: 0, data: { config, docs, options: {} } });
  for (const question of questions) {
    const { items } = await ask({ type: 2, data: question });
    answers.push(items.map((sections) => sections[0].location.split("#")[0]));
  }
  console.log(JSON.stringify(answers));
})();
