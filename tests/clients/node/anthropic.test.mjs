// @anthropic-ai/sdk: nothing is changed but the base URL.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";
import { assertMetadata, assertOneRun, start } from "./servers.mjs";

const input_schema = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
const tools = ["look_up", "measure"].map((name) => ({ name, input_schema }));
const errands = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]';
const request = (content, more) => ({
  model: "claude-sonnet-5",
  max_tokens: 100,
  messages: [{ role: "user", content }],
  ...more,
});
const lookUp = betaZodTool({
  name: "look_up",
  description: "Looks something up.",
  inputSchema: z.object({ key: z.string() }),
  run: ({ key }) => `contents of ${key}`,
});

let sprag;
let client;
before(async () => {
  sprag = await start();
  client = new Anthropic({ baseURL: sprag.url, apiKey: "sk-ant-test", maxRetries: 0 });
});
beforeEach(() => sprag.answers.splice(0));
after(() => sprag.stop());

test("plain", async () => {
  const { data, response } = await client.messages
    .create(request("Say it. [[mock:text Fine words.]][[mock:usage input=11 output=7 cached=5]]"))
    .withResponse();
  assert.equal(data.content[0].text, "Fine words.");
  assert.equal(data.stop_reason, "end_turn");
  assert.equal(data.usage.output_tokens, 7);
  assert.equal(data.usage.cache_read_input_tokens, 5);
  assertMetadata(data.sprag, 1, "anthropic", sprag.answers[0]);
  assert.equal(response.headers.get("x-sprag-run-id"), data.sprag.run_id);
});

test("stream", async () => {
  const order = "hello [[mock:text One, two, three.]][[mock:delta 4]][[mock:usage input=9 output=4]]";
  const events = await Array.fromAsync(await client.messages.create(request(order, { stream: true })));
  assert.equal(events.at(-1).type, "message_stop");
  assertMetadata(events.at(-1).sprag, 1, "anthropic", sprag.answers[0]);
  const final = await client.messages.stream(request(order)).finalMessage();
  assert.equal(final.content[0].text, "One, two, three.");
  assert.equal(final.usage.output_tokens, 4);
});

test("parallel tool calls", async () => {
  const order = '[[mock:tool name=look_up args={"key":"a"}]][[mock:tool name=measure args={"key":"b"}]]';
  const plain = await client.messages.create(request(`Do both. ${order}`, { tools }));
  const streamed = await client.messages.stream(request(`Do both. ${order}`, { tools })).finalMessage();
  for (const message of [plain, streamed]) {
    const calls = message.content.filter((block) => block.type === "tool_use");
    assert.deepEqual(calls.map((call) => [call.name, call.input]), [["look_up", { key: "a" }], ["measure", { key: "b" }]]);
  }
});

for (const stream of [false, true]) {
  test(`the SDK's tool runner is one run, ${stream ? "streamed" : "plain"}`, async () => {
    const runner = client.beta.messages.toolRunner(request(errands, { tools: [lookUp], stream }));
    const final = await runner.runUntilDone();
    assert.equal(final.content[0].text, "Finished after 3 steps.");
    assertOneRun(sprag.answers, 4);
  });
}

test("parallel tool runners are runs of their own", async () => {
  const run = (number) =>
    client.beta.messages.toolRunner(request(`Errand ${number}. ${errands}`, { tools: [lookUp] })).runUntilDone();
  await Promise.all([1, 2, 3].map(run));
  const runs = Map.groupBy(sprag.answers, (answer) => answer.runId);
  assert.equal(runs.size, 3);
  for (const answers of runs.values()) assertOneRun(answers, 4);
});

test("count tokens", async () => {
  const { model, messages } = request("How long is this?");
  assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
});

test("errors of the provider", async () => {
  const kinds = { 400: Anthropic.BadRequestError, 401: Anthropic.AuthenticationError, 429: Anthropic.RateLimitError };
  for (const [status, kind] of Object.entries({ ...kinds, 500: Anthropic.InternalServerError })) {
    const order = `[[mock:status ${status}]][[mock:message It went wrong.]]`;
    await assert.rejects(client.messages.create(request(order)), (error) => {
      assert.ok(error instanceof kind);
      assert.match(error.message, /It went wrong\./);
      assert.ok(error.headers.get("x-sprag-run-id"));
      return true;
    });
  }
});

test("a bad run id is said in the SDK's own way", async () => {
  const headers = { "x-sprag-run-id": "x".repeat(129) };
  await assert.rejects(client.messages.create(request("hello"), { headers }), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.equal(error.error.type, "error");
    assert.match(error.message, /run/);
    return true;
  });
});
