// Runs that an admin ends: killed between two steps or in the middle of an answer, or with their agent switched off.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import OpenAI from "openai";
import { agents, models, shown } from "./agents.mjs";
import { KILL_REASON, start } from "./servers.mjs";

const errands = 'Read all parts. [[mock:agent steps=9 tool=look_up args={"key":"part $N"}]]';
const stalling = "Say something. [[mock:text one two three four five six]][[mock:delta 4]][[mock:stall 5]]";

async function withSprag(work) {
  const sprag = await start();
  try {
    await work(sprag);
  } finally {
    await sprag.stop();
  }
}

function assertReasons(answers, reasons) {
  assert.deepEqual(answers.map((answer) => answer.headers.get("x-sprag-blocked")), reasons);
  assert.equal(new Set(answers.map((answer) => answer.runId)).size, 1);
}

/** Fails as an SDK does that was told of the kill. */
const assertToldOfKill = (working) =>
  assert.rejects(working, (error) => {
    assert.match(shown(error), new RegExp(`${KILL_REASON}.*run_killed`));
    return true;
  });

for (const [name, run] of Object.entries(agents)) {
  for (const stream of [false, true]) {
    describe(`${name}, ${stream ? "streamed" : "plain"}`, () => {
      test("killed between two steps, it asks once more", () =>
        withSprag(async (sprag) => {
          sprag.acts[3] = () => sprag.kill(sprag.answers[0].runId);
          await assertToldOfKill(run(sprag.url, stream, errands));
          assertReasons(sprag.answers, [null, null, "run_killed"]);
          assert.equal(sprag.answers[2].status, 403);
        }));

      test("switched off, it ends in good order", () =>
        withSprag(async (sprag) => {
          sprag.acts[3] = () => sprag.deactivate();
          assert.match(await run(sprag.url, stream, errands), /agent_inactive/);
          assertReasons(sprag.answers, [null, null, "agent_inactive"]);
          assert.equal(sprag.answers[2].status, 200);
        }));
    });
  }
}

/** Ways to read an answer to its end; `said` is called at each part of it. */
const readers = {
  async "openai chat"(url, said) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test" });
    const messages = [{ role: "user", content: stalling }];
    for await (const _ of await client.chat.completions.create({ model: "gpt-4o", messages, stream: true })) await said();
  },

  async "openai responses"(url, said) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test" });
    for await (const _ of await client.responses.create({ model: "gpt-4o", input: stalling, stream: true })) await said();
  },

  async "anthropic messages"(url, said) {
    const client = new Anthropic({ baseURL: url, apiKey: "sk-ant-test" });
    const request = { model: "claude-sonnet-5", max_tokens: 100, messages: [{ role: "user", content: stalling }] };
    for await (const _ of await client.messages.create({ ...request, stream: true })) await said();
  },

  "ai with openai": (url, said) => vercel(url, "chat", said),
  "ai with openai responses": (url, said) => vercel(url, "responses", said),
  "ai with anthropic": (url, said) => vercel(url, "anthropic", said),
};

async function vercel(url, model, said) {
  let failure;
  const onError = ({ error }) => (failure = error);
  for await (const _ of streamText({ model: models(url)[model], prompt: stalling, onError }).textStream) await said();
  if (failure instanceof Error) throw failure;
  if (failure) throw new Error(JSON.stringify(failure));
}

for (const [name, read] of Object.entries(readers)) {
  test(`${name}: killed in the middle of an answer, it fails and asks no more`, () =>
    withSprag(async (sprag) => {
      let killing;
      await assertToldOfKill(read(sprag.url, () => (killing ??= sprag.kill(sprag.answers[0].runId))));
      assert.deepEqual(sprag.answers.map((answer) => answer.status), [200]);

      await assertToldOfKill(read(sprag.url, () => {}));
      assertReasons(sprag.answers, [null, "run_killed"]);
      assert.equal(sprag.answers[1].status, 403);
    }));
}
