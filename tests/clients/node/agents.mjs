// Agents upon every SDK: each calls the model, runs the tool that it asks for, and ends when it asks for none. Nothing is
// changed but the base URL: the SDKs keep their own retries. Each gives the last words of the model.

import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";
import { modelFor } from "./servers.mjs";

const FAILURE = "Error: ENOENT: no such file or directory, open 'notes.txt'";
const parameters = { type: "object", properties: { key: { type: "string" } }, required: ["key"] };
const description = "Looks something up.";
const inputSchema = z.object({ key: z.string() });
const MANY = 40;

/** Calls the model until it calls no tool any more; gives its last words. */
async function untilItStops(step) {
  for (let number = 0; number < MANY; number += 1) {
    const words = await step();
    if (words !== undefined) return words;
  }
  throw new Error("nobody stopped it");
}

export const agents = {
  async "openai chat"(url, stream, prompt) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test" });
    const messages = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", function: { name: "look_up", parameters } }];
    return untilItStops(async () => {
      const request = { model: modelFor("gpt-4o"), messages, tools };
      const answer = stream
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      const { role, content, tool_calls } = answer.choices[0].message;
      if (!tool_calls?.length) return content;
      messages.push({ role, content, tool_calls });
      messages.push(...tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: FAILURE })));
    });
  },

  async "openai responses"(url, stream, prompt) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test" });
    const input = [{ role: "user", content: prompt }];
    const tools = [{ type: "function", name: "look_up", parameters, strict: false }];
    return untilItStops(async () => {
      const request = { model: modelFor("gpt-4o"), input, tools };
      const answer = stream
        ? await client.responses.stream(request).finalResponse()
        : await client.responses.create(request);
      const calls = answer.output.filter((item) => item.type === "function_call");
      if (calls.length === 0) return answer.output.map((item) => item.content[0].text).join("");
      for (const { type, call_id, name, arguments: given } of calls) {
        input.push({ type, call_id, name, arguments: given }, { type: "function_call_output", call_id, output: FAILURE });
      }
    });
  },

  async "anthropic messages"(url, stream, prompt) {
    const client = new Anthropic({ baseURL: url, apiKey: "sk-ant-test" });
    const messages = [{ role: "user", content: prompt }];
    const tools = [{ name: "look_up", input_schema: parameters }];
    return untilItStops(async () => {
      const request = { model: modelFor("claude-sonnet-5"), max_tokens: 100, messages, tools };
      const answer = stream
        ? await client.messages.stream(request).finalMessage()
        : await client.messages.create(request);
      const calls = answer.content.filter((block) => block.type === "tool_use");
      if (calls.length === 0) return answer.content[0].text;
      const result = ({ id }) => ({ type: "tool_result", tool_use_id: id, content: FAILURE, is_error: true });
      messages.push({ role: "assistant", content: calls.map(({ type, id, name, input }) => ({ type, id, name, input })) });
      messages.push({ role: "user", content: calls.map(result) });
    });
  },

  async "anthropic tool runner"(url, stream, prompt) {
    const client = new Anthropic({ baseURL: url, apiKey: "sk-ant-test" });
    const look_up = betaZodTool({ name: "look_up", description, inputSchema, run: () => FAILURE });
    const messages = [{ role: "user", content: prompt }];
    const request = { model: modelFor("claude-sonnet-5"), max_tokens: 100, max_iterations: MANY, messages, stream };
    return (await client.beta.messages.toolRunner({ ...request, tools: [look_up] }).runUntilDone()).content[0].text;
  },

  "ai with openai": (url, stream, prompt) => vercel(models(url).chat, stream, prompt),
  "ai with openai responses": (url, stream, prompt) => vercel(models(url).responses, stream, prompt),
  "ai with anthropic": (url, stream, prompt) => vercel(models(url).anthropic, stream, prompt),
};

/** The models of `ai` by Vercel. */
export function models(url) {
  const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: "sk-test" });
  const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: "sk-ant-test" });
  return {
    chat: openai.chat(modelFor("gpt-4o")),
    responses: openai.responses(modelFor("gpt-4o")),
    anthropic: anthropic(modelFor("claude-sonnet-5")),
  };
}

async function vercel(model, stream, prompt) {
  const look_up = tool({ description, inputSchema, execute: async () => FAILURE });
  const request = { model, tools: { look_up }, prompt, stopWhen: isStepCount(MANY) };
  if (!stream) return (await generateText(request)).text;
  let failure;
  const result = streamText({ ...request, onError: ({ error }) => (failure = error) });
  const words = (await Array.fromAsync(result.textStream)).join("");
  if (failure) throw failure;
  return words;
}

/** All that an SDK's user can see of an error. */
export const shown = (error) =>
  [error.message, error.type, error.code, error.responseBody, JSON.stringify(error.error)].join(" ");
