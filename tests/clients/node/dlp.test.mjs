// Sensitive data through the SDKs: the provider does not see it, and the client gets its own back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { start } from "./servers.mjs";

const key = "sk-1234567890abcdef";
const hidden = "[REDACTED:OPENAI_KEY]";
const mail = "anna.kowalska@acme-motors.com";
const asked = `My API key is ${key}`;
// In headers: a placeholder that stands in the prompt itself is passed over.
const calling = { headers: { "x-mock-tool": 'name=send args={"to":"[EMAIL_1]"}', "x-mock-delta": "3" } };
// By these the provider says it: what stands in the prompt is hidden from it.
const saying = { headers: { "x-mock-text": `It is ${key}!`, "x-mock-delta": "3" } };
const chatOrder = (content, more) => ({ model: "gpt-4o", messages: [{ role: "user", content }], ...more });
const claudeOrder = (content, more) => ({
  model: "claude-sonnet-5",
  max_tokens: 100,
  messages: [{ role: "user", content }],
  ...more,
});

let sprag;
let chat;
let claude;
before(async () => {
  sprag = await start();
  chat = new OpenAI({ baseURL: `${sprag.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  claude = new Anthropic({ baseURL: sprag.url, apiKey: "sk-ant-test", maxRetries: 0 });
});
after(() => sprag.stop());

const lastBodies = async () => (await sprag.forwarded()).slice(-2).map((request) => request.body);

test("OpenAI: a key is hidden both ways", async () => {
  const plain = await chat.chat.completions.create(chatOrder(asked), saying);
  assert.equal(plain.choices[0].message.content, `It is ${hidden}!`);
  const chunks = await Array.fromAsync(await chat.chat.completions.create(chatOrder(asked, { stream: true }), saying));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), `It is ${hidden}!`);
  for (const body of await lastBodies()) assert.ok(body.includes(`My API key is ${hidden}`) && !body.includes(key));
});

test("OpenAI: arguments bring the client's own back", async () => {
  const order = chatOrder(`Write to ${mail}.`);
  const plain = (await chat.chat.completions.create(order, calling)).choices[0].message;
  const streamed = (await chat.chat.completions.stream(order, calling).finalChatCompletion()).choices[0].message;
  for (const message of [plain, streamed])
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { to: mail });
  for (const body of await lastBodies()) assert.ok(!body.includes(mail));
});

test("Anthropic: a key is hidden both ways", async () => {
  const plain = await claude.messages.create(claudeOrder(asked), saying);
  const streamed = await claude.messages.stream(claudeOrder(asked), saying).finalMessage();
  for (const message of [plain, streamed]) assert.equal(message.content[0].text, `It is ${hidden}!`);
  for (const body of await lastBodies()) assert.ok(body.includes(`My API key is ${hidden}`) && !body.includes(key));
});

test("Anthropic: arguments bring the client's own back", async () => {
  const order = claudeOrder(`Write to ${mail}.`);
  const plain = await claude.messages.create(order, calling);
  const streamed = await claude.messages.stream(order, calling).finalMessage();
  for (const message of [plain, streamed])
    assert.deepEqual(message.content.find((block) => block.type === "tool_use").input, { to: mail });
  for (const body of await lastBodies()) assert.ok(!body.includes(mail));
});
