// Every reason of a stop in every SDK: the class of its exception, what the exception holds, and one request only. The
// SDKs keep their own retries: the proof is that they do not use them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { callerOf, calls, cases, classFor, config, dialectOf, holds, isEmbeddings, statusFor } from "./reasons.mjs";
import { KILL_REASON, start } from "./servers.mjs";

const stops = join(import.meta.dirname, "../../../docs/stops.md");

test("no reason is missing", () => {
  const rows = readFileSync(stops, "utf8").matchAll(/^\| `(\w+)` \| (?:error|assistant) \|/gm);
  const listed = Array.from(rows, ([, reason]) => reason);
  assert.deepEqual(new Set(cases.map((row) => row.reason)), new Set(listed));
  assert.ok(listed.length > 10);
});

for (const requireKeys of [false, true]) {
  describe(`a stop, ${requireKeys ? "where keys are required" : "where everybody is let in"}`, () => {
    let sprag;
    const begun = new Set();
    before(async () => {
      sprag = await start(config(requireKeys));
    });
    after(() => sprag.stop());

    for (const row of cases.filter((row) => row.require_keys === requireKeys)) {
      for (const [name, call] of Object.entries(calls)) {
        if (row.not_for.includes(dialectOf(name))) continue;
        for (const stream of isEmbeddings(name) ? [false] : [false, true]) {
          test(`${row.case}, ${name}, ${stream ? "streamed" : "plain"}`, async () => {
            const caller = callerOf(sprag.url, row, `${row.case}-${name.replaceAll(" ", "-")}-${stream}`);
            await provoke(sprag, begun, caller, call, stream);
            sprag.answers.splice(0);
            const status = await stopped(caller, name, call, stream);

            assert.deepEqual(sprag.answers.map((answer) => answer.status), [status], "one request, and no other");
            assert.equal(sprag.answers[0].headers.get("x-sprag-blocked"), row.reason);
            assert.equal(sprag.answers[0].headers.get("x-should-retry"), "false");
            const sent = (await sprag.forwarded()).filter((request) => request.body.includes(caller.prompt));
            assert.equal(sent.length, row.before === "call" ? 1 : 0, "the stop was not sent on");
          });
        }
      }
    }
  });
}

async function provoke(sprag, begun, caller, call, stream) {
  const { row, run } = caller;
  if (row.before === "call") assert.ok(!(await call(caller, stream)).includes("[sprag: "));
  if (row.before === "call of the agent" && !begun.has(row.case)) {
    begun.add(row.case);
    await calls["openai chat"](callerOf(sprag.url, row, `${row.case}-first-of-the-agent`), false);
  }
  const pause = row.act === "pause";
  if (pause || row.act === "kill") {
    await sprag.api("kills", "POST", { scope: `run:${row.case}/${run}`, reason: KILL_REASON, pause });
  }
  if (row.act === "deactivate") await sprag.api(`agents/${row.case}`, "PATCH", { active: false });
}

/** Makes the call that is stopped, and gives the status that it must have got. */
async function stopped(caller, name, call, stream) {
  const { row, run } = caller;
  const signature = row.has_run ? `[sprag: ${row.reason}, run ${run}]` : `[sprag: ${row.reason}]`;
  if (row.status === 200 && !isEmbeddings(name)) {
    assert.ok((await call(caller, stream)).endsWith(signature));
    return 200;
  }
  const status = statusFor(name, row);
  await assert.rejects(call(caller, stream), (raised) => {
    assert.equal(raised.constructor, classFor(name, status));
    assert.ok(raised.message.includes(signature), raised.message);
    const held = holds(name, raised);
    const told = raised.message + JSON.stringify(held);
    assert.ok(!row.says || !told.includes(row.says), "what was stopped is not quoted");
    checkFields(row, run, held, status);
    return true;
  });
  return status;
}

/** All that a program can act on is in the exception. */
function checkFields(row, run, { status: told, blocked, error, beside }, status) {
  assert.deepEqual([told, blocked, error.type, error.code], [status, row.reason, row.reason, row.code]);
  for (const [name, value] of Object.entries(row.fields)) {
    if (value === "*") assert.ok(error[name] !== undefined && error[name] !== null, name);
    else assert.deepEqual(error[name], value, name);
  }
  if (row.has_run) assert.deepEqual([error.run_id, error.agent], [run, row.case]);
  if (!beside) return;
  assert.equal(beside.block_reason, row.reason);
  assert.equal(beside.retry_after_seconds > 0, row.waits);
}
