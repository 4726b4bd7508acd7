// Node's `pg`: run with `node client.js`; prints a line for each step.

const { Client, types } = require("pg");

types.setTypeParser(1082, (text) => text); // a date stays the text that the server wrote

const statement = (name) => process.env["HUBBUB_" + name];
const text = (result) => result.rows.map((row) => row.join("|")).join(";");

async function main() {
  const client = new Client();
  await client.connect();
  const ask = async (sql, values) => text(await client.query({ text: sql, values, rowMode: "array" }));
  const steps = {
    "sign in": () => ask(statement("ONE")),
    tables: () => ask(statement("TABLES")),
    columns: () => ask(statement("COLUMNS")),
    explain: () => ask(statement("EXPLAIN")),
    priced: () => ask(statement("COUNTS")),
    again: () => ask(statement("COUNTS")),
    refused: () => ask(statement("REFUSED")),
    after: () => ask(statement("ONE")),
    types: () => ask(statement("TYPES")),
    prepared: () => ask(statement("PREPARED") + "$1", [Number(statement("LIMIT"))]),
  };
  console.log("version\t" + require("pg/package.json").version);
  await client.query(statement("PRICE"));
  for (const [name, step] of Object.entries(steps)) {
    const line = await step().catch((error) => "error: " + error.message);
    console.log(name + "\t" + line.replaceAll("\n", " "));
  }
  await client.end();
}

main();
