// openai for Node: nothing is changed but the base URL.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { assertMetadata, assertOneRun, start } from "./servers.mjs";

const model = "gpt-4o";
const parameters = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
const tools = ["look_up", "measure"].map((name) => ({ type: "function", function: { name, parameters } }));
const errands = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]';
const user = (content) => ({ role: "user", content });

let sprag;
let client;
before(async () => {
  sprag = await start();
  client = new OpenAI({ baseURL: `${sprag.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
});
beforeEach(() => sprag.answers.splice(0));
after(() => sprag.stop());

test("plain", async () => {
  const { data, response } = await client.chat.completions
    .create({ model, messages: [user("Say it. [[mock:text Grüße, 世界!]][[mock:usage input=11 output=7]]")] })
    .withResponse();
  assert.equal(data.choices[0].message.content, "Grüße, 世界!");
  assert.equal(data.usage.prompt_tokens, 11);
  assert.equal(data.usage.completion_tokens, 7);
  assertMetadata(data.sprag, 1, "openai", sprag.answers[0]);
  assert.equal(response.headers.get("x-sprag-run-id"), data.sprag.run_id);
  assert.equal(Number(response.headers.get("x-sprag-cost-usd")), data.sprag.cost_usd);
});

test("stream", async () => {
  const stream = await client.chat.completions.create({
    model,
    stream: true,
    messages: [user("hello [[mock:text One, two, three.]][[mock:delta 4]]")],
  });
  const chunks = await Array.fromAsync(stream);
  assert.ok(chunks.length > 4);
  assert.ok(chunks.every((chunk) => chunk.choices.length > 0), "a usage chunk that nobody asked for");
  assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join(""), "One, two, three.");
  assertMetadata(chunks.at(-1).sprag, 1, "openai", sprag.answers[0]);
});

test("stream with usage", async () => {
  const stream = await client.chat.completions.create({
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [user("hello [[mock:usage input=21 output=5]]")],
  });
  const last = (await Array.fromAsync(stream)).at(-1);
  assert.equal(last.usage.completion_tokens, 5);
  assertMetadata(last.sprag, 1, "openai", sprag.answers[0]);
});

for (const stream of [false, true]) {
  test(`the SDK's tool loop is one run, ${stream ? "streamed" : "plain"}`, async () => {
    const keys = [];
    const look_up = ({ key }) => (keys.push(key), `contents of ${key}`);
    const runner = client.chat.completions.runTools({
      model,
      stream,
      messages: [user(errands)],
      tools: [{ type: "function", function: { name: "look_up", parameters, parse: JSON.parse, function: look_up } }],
    });
    assert.equal(await runner.finalContent(), "Finished after 3 steps.");
    assert.deepEqual(keys, ["part-1", "part-2", "part-3"]);
    assertOneRun(sprag.answers, 4);
  });
}

test("parallel tool calls", async () => {
  const order = '[[mock:tool name=look_up args={"key":"a"}]][[mock:tool name=measure args={"key":"b"}]]';
  const answer = await client.chat.completions.create({ model, tools, messages: [user(`Do both. ${order}`)] });
  const calls = answer.choices[0].message.tool_calls.map((call) => [call.function.name, call.function.arguments]);
  assert.deepEqual(calls, [["look_up", '{"key":"a"}'], ["measure", '{"key":"b"}']]);
});

test("parallel conversations are runs of their own", async () => {
  await Promise.all([0, 1, 2].map(async (number) => {
    const messages = [user("Let us talk.")];
    for (const turn of [1, 2, 3]) {
      const headers = { "x-mock-text": `Answer ${turn} in conversation ${number}.` };
      const answer = await client.chat.completions.create({ model, messages }, { headers });
      messages.push(answer.choices[0].message, user(`Question ${turn}.`));
      assert.equal(answer.sprag.step, turn);
    }
  }));
  const runs = Map.groupBy(sprag.answers, (answer) => answer.runId);
  assert.equal(runs.size, 3);
  for (const answers of runs.values()) assertOneRun(answers, 3);
});

test("responses, plain and streamed", async () => {
  const plain = await client.responses.create({ model, input: "hello [[mock:text Fine words.]]" });
  assert.equal(plain.output_text, "Fine words.");
  assertMetadata(plain.sprag, 1, "openai", sprag.answers[0]);
  const stream = await client.responses.create({ model, stream: true, input: "hello [[mock:text Fine words.]]" });
  const last = (await Array.fromAsync(stream)).at(-1);
  assert.equal(last.type, "response.completed");
  assertMetadata(last.sprag, 1, "openai", sprag.answers[1]);
});

test("responses by previous id are one run", async () => {
  const tool = { type: "function", name: "look_up", parameters, strict: false };
  let input = errands;
  let previous_response_id;
  for (;;) {
    const response = await client.responses.create({ model, input, tools: [tool], previous_response_id });
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) break;
    input = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: `contents for ${call_id}` }));
    previous_response_id = response.id;
  }
  assertOneRun(sprag.answers, 4);
});

test("embeddings and models", async () => {
  const answer = await client.embeddings.create({ model: "text-embedding-3-small", input: "one" });
  assert.ok(answer.data[0].embedding.length > 0);
  assertMetadata(answer.sprag, 1, "openai", sprag.answers[0]);
  assert.ok((await Array.fromAsync(client.models.list())).length > 0);
});

test("errors of the provider", async () => {
  const kinds = { 400: OpenAI.BadRequestError, 401: OpenAI.AuthenticationError, 429: OpenAI.RateLimitError };
  for (const [status, kind] of Object.entries({ ...kinds, 500: OpenAI.InternalServerError })) {
    const messages = [user(`[[mock:status ${status}]][[mock:message It went wrong.]]`)];
    await assert.rejects(client.chat.completions.create({ model, messages }), (error) => {
      assert.ok(error instanceof kind);
      assert.match(error.message, /It went wrong\./);
      assert.ok(error.headers.get("x-sprag-run-id"));
      return true;
    });
  }
});

test("a bad run id is said in the SDK's own way", async () => {
  const headers = { "x-sprag-run-id": "x".repeat(129) };
  await assert.rejects(client.chat.completions.create({ model, messages: [user("hello")] }, { headers }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.match(error.message, /run/);
    return true;
  });
});
