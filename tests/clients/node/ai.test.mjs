// Vercel's `ai` with its OpenAI and Anthropic providers: nothing is changed but the base URL.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { assertMetadata, assertOneRun, start } from "./servers.mjs";

const prompt = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]';
const tools = {
  look_up: tool({
    description: "Looks something up.",
    inputSchema: z.object({ key: z.string() }),
    execute: async ({ key }) => `contents of ${key}`,
  }),
};

let sprag;
let models;
before(async () => {
  sprag = await start();
  const openai = createOpenAI({ baseURL: `${sprag.url}/v1`, apiKey: "sk-test" });
  const anthropic = createAnthropic({ baseURL: `${sprag.url}/v1`, apiKey: "sk-ant-test" });
  models = {
    chat: openai.chat("gpt-4o"),
    responses: openai.responses("gpt-4o"),
    messages: anthropic("claude-sonnet-5"),
  };
});
beforeEach(() => sprag.answers.splice(0));
after(() => sprag.stop());

for (const api of ["chat", "responses", "messages"]) {
  test(`plain, ${api}`, async () => {
    const order = "hello [[mock:text Fine words.]][[mock:usage input=11 output=7]]";
    const result = await generateText({ model: models[api], prompt: order, include: { responseBody: true } });
    assert.equal(result.text, "Fine words.");
    assert.equal(result.usage.outputTokens, 7);
    assert.equal(result.response.headers["x-sprag-step"], "1");
    const provider = api === "messages" ? "anthropic" : "openai";
    assertMetadata(result.response.body.sprag, 1, provider, sprag.answers[0]);
  });

  test(`generateText with tools is one run, ${api}`, async () => {
    const result = await generateText({ model: models[api], tools, prompt, stopWhen: isStepCount(9) });
    assert.equal(result.text, "Finished after 3 steps.");
    assert.deepEqual(result.steps.map((step) => step.response.headers["x-sprag-step"]), ["1", "2", "3", "4"]);
    assertOneRun(sprag.answers, 4);
  });

  test(`streamText with tools is one run, ${api}`, async () => {
    const result = streamText({ model: models[api], tools, prompt, stopWhen: isStepCount(9), onError: () => {} });
    assert.equal((await Array.fromAsync(result.textStream)).join(""), "Finished after 3 steps.");
    assert.ok((await result.totalUsage).outputTokens > 0);
    assertOneRun(sprag.answers, 4);
  });

  test(`an error of the provider, ${api}`, async () => {
    const order = "[[mock:status 400]][[mock:message It went wrong.]]";
    await assert.rejects(generateText({ model: models[api], prompt: order }), (error) => {
      assert.equal(error.name, "AI_APICallError");
      assert.equal(error.statusCode, 400);
      assert.match(error.message, /It went wrong\./);
      return true;
    });
  });
}
