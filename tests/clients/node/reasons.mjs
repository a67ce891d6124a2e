// Every way to be stopped, and one call in every form that the SDKs have. The table and the configuration are shared
// with the suites in Rust and Python: `../reasons`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, embed, generateText, streamText } from "ai";
import OpenAI from "openai";

const shared = join(import.meta.dirname, "../reasons");
const DAY_MS = 24 * 60 * 60 * 1000;
/** What every call uses: 60 cents. No budget of the table pays for two. */
const USAGE = "input=60 output=0";

const unset = { says: "", before: "nothing", key: "sk-test", require_keys: false, has_run: true, waits: false, not_for: [] };
export const cases = JSON.parse(readFileSync(join(shared, "cases.json"), "utf8")).map((row) => ({ ...unset, ...row }));

export function config(requireKeys) {
  const closed = new Date(Date.now() + 3 * DAY_MS).toLocaleDateString("en-US", { weekday: "short", timeZone: "UTC" });
  const agents = readFileSync(join(shared, "sprag.toml"), "utf8").replaceAll("CLOSED", closed.toLowerCase());
  return `${agents}\n[proxy]\nrequire_keys = ${requireKeys}\n`;
}

/** Where a call goes, as whom and in which run. */
export function callerOf(url, row, run) {
  const base = `${url}/agents/${row.case}`;
  const options = { apiKey: row.key, headers: { "x-sprag-run-id": run, "x-mock-usage": USAGE } };
  const own = { apiKey: row.key, defaultHeaders: options.headers };
  return {
    row,
    run,
    prompt: `please tell me about ${run} ${row.says}`.trimEnd(),
    openai: () => new OpenAI({ ...own, baseURL: `${base}/v1` }),
    anthropic: () => new Anthropic({ ...own, baseURL: base }),
    aiOpenai: () => createOpenAI({ ...options, baseURL: `${base}/v1` }),
    aiAnthropic: () => createAnthropic({ ...options, baseURL: `${base}/v1` }),
  };
}

const messages = ({ prompt }) => [{ role: "user", content: prompt }];

/** Each makes one call and gives the words of the answer. */
export const calls = {
  async "openai chat"(caller, stream) {
    const request = { model: "gpt-4o", messages: messages(caller) };
    const completions = caller.openai().chat.completions;
    const answer = stream
      ? await completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()
      : await completions.create(request);
    return said(answer.choices[0].message.content, answer.model, answer.usage.total_tokens);
  },

  async "openai completions"(caller, stream) {
    const request = { model: "gpt-3.5-turbo-instruct", prompt: caller.prompt };
    const answer = await caller.openai().completions.create({ ...request, stream });
    const chunks = stream ? await Array.fromAsync(answer) : [answer];
    const words = chunks.map((chunk) => chunk.choices[0]?.text ?? "").join("");
    return said(words, chunks.at(-1).model, chunks.at(-1).usage?.total_tokens ?? 0);
  },

  async "openai responses"(caller, stream) {
    const request = { model: "gpt-4o", input: caller.prompt };
    const responses = caller.openai().responses;
    const answer = stream ? await responses.stream(request).finalResponse() : await responses.create(request);
    return said(answer.output[0].content[0].text, answer.model, answer.usage.total_tokens);
  },

  async "openai embeddings"(caller) {
    await caller.openai().embeddings.create({ model: "text-embedding-3-small", input: caller.prompt });
    return "";
  },

  async "anthropic messages"(caller, stream) {
    const request = { model: "claude-sonnet-5", max_tokens: 100, messages: messages(caller) };
    const api = caller.anthropic().messages;
    const answer = stream ? await api.stream(request).finalMessage() : await api.create(request);
    return said(answer.content[0].text, answer.model, answer.usage.input_tokens + answer.usage.output_tokens);
  },

  "ai with openai": (caller, stream) => vercel(caller.aiOpenai().chat("gpt-4o"), caller, stream),
  "ai with openai responses": (caller, stream) => vercel(caller.aiOpenai().responses("gpt-4o"), caller, stream),
  "ai with anthropic": (caller, stream) => vercel(caller.aiAnthropic()("claude-sonnet-5"), caller, stream),

  async "ai with openai embeddings"(caller) {
    await embed({ model: caller.aiOpenai().embedding("text-embedding-3-small"), value: caller.prompt });
    return "";
  },
};

export const isEmbeddings = (name) => name.endsWith("embeddings");

/** The dialect of a call, as the table calls it. */
export function dialectOf(name) {
  if (name.includes("anthropic")) return "anthropic";
  const own = ["completions", "responses", "embeddings"].find((api) => name.endsWith(api));
  return `openai_${own ?? "chat"}`;
}

/** The status that a client gets in the error form. */
export function statusFor(name, row) {
  const usual = row.status === 200 ? 403 : row.status;
  return name.startsWith("ai ") && usual === 429 ? 403 : usual;
}

/** The class that an SDK raises at a status. */
export function classFor(name, status) {
  if (name.startsWith("ai ")) return APICallError;
  const library = name.startsWith("openai") ? OpenAI : Anthropic;
  const names = { 401: "AuthenticationError", 402: "APIError", 403: "PermissionDeniedError", 429: "RateLimitError" };
  return library[names[status]];
}

/** What a program finds in an exception: the error, and what stands next to it. */
export function holds(name, raised) {
  const blocked = raised.headers?.get("x-sprag-blocked");
  if (name.startsWith("ai ")) {
    const body = JSON.parse(raised.responseBody);
    const { statusCode: status, responseHeaders: headers } = raised;
    return { status, blocked: headers["x-sprag-blocked"], error: body.error, beside: body };
  }
  if (name.startsWith("openai")) {
    assert.deepEqual([raised.type, raised.code], [raised.error.type, raised.error.code]);
    return { status: raised.status, blocked, error: raised.error, beside: undefined };
  }
  return { status: raised.status, blocked, error: raised.error.error, beside: raised.error };
}

async function vercel(model, { prompt }, stream) {
  if (!stream) {
    const answer = await generateText({ model, prompt });
    return said(answer.text, answer.response.modelId, answer.usage.totalTokens);
  }
  let failure;
  const answer = streamText({ model, prompt, onError: ({ error }) => (failure = error) });
  const words = (await Array.fromAsync(answer.textStream)).join("");
  if (failure) throw failure;
  return said(words, (await answer.response).modelId, (await answer.usage).totalTokens);
}

/** The words of an answer. Those of a stop come from no model and cost nothing. */
function said(words, model, tokens) {
  if (words.includes("[sprag: ")) assert.deepEqual([model, tokens ?? 0], ["sprag-policy", 0]);
  return words;
}
