// Ask a hubbub server from JavaScript, with nothing but fetch (Node 18 or newer, Deno, Bun, browsers).
//
//     HUBBUB_URL=http://127.0.0.1:8321 HUBBUB_TOKEN=hub_… node query.mjs "SELECT COUNT(*) AS n FROM health" 0.1

import { randomUUID } from "node:crypto";

const address = process.env.HUBBUB_URL ?? "http://127.0.0.1:8321";
const token = process.env.HUBBUB_TOKEN;

async function call(path, body, headers = {}) {
  const response = await fetch(`${address}/api/v1/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    redirect: "error", // a redirect could take the token elsewhere
  });
  const reply = await response.json();
  if (!response.ok) {
    throw new Error(`${reply.code} ${reply.detail}\n      ${reply.remedy}`);
  }
  return reply;
}

/** Return the cost and the margins of error of a query. Free. */
export const estimate = (sql, epsilon) => call("estimate", { sql, epsilon });

/** Answer a query. One key names the request and its retries, so that they are charged once. */
export async function query(sql, epsilon) {
  const headers = { "Idempotency-Key": randomUUID() };
  for (let attempt = 1; ; attempt++) {
    try {
      return await call("query", { sql, epsilon }, headers);
    } catch (error) {
      if (attempt === 4 || !(error instanceof TypeError)) throw error; // a TypeError is a failure of the network
      await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
    }
  }
}

const [sql, epsilon] = process.argv.slice(2);
try {
  const { expected, admitted } = await estimate(sql, epsilon);
  for (const { name, plus_minus } of expected) console.log(`${name} will be ±${plus_minus}`);
  if (admitted) {
    const { answer, left } = await query(sql, epsilon);
    const [columns, rows] = [answer.columns, answer.ratio.length];
    for (let row = 0; row < rows; row++) {
      const cell = ({ name, values, low, high }) =>
        `${name} = ${values[row]}` + (low ? ` (${low[row]} to ${high[row]})` : "");
      console.log(columns.map(cell).join(", "));
    }
    console.log(`left: ε = ${left}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
