// Starts the programs under test: the scripted provider, and Sprag before it, on free ports. Also notes the head of
// every answer that an SDK gets, because frameworks hide them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

/** The admin's token. */
export const TOKEN = "a-token-for-tests-only-0123456789abcdef";
/** What the admin says when it kills a run. */
export const KILL_REASON = "too-expensive";
const realFetch = globalThis.fetch;
const target = join(process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, "../../../target"), "debug");

/** Why a stuck agent is stopped. Any other reason than a loop needs no detection: the first request is refused. */
export const STOP = process.env.SPRAG_TEST_STOP ?? "loop_detected";

/** The model of an agent that will be stopped. */
export const modelFor = (name) => (STOP === "model_not_allowed" ? "nobody-knows" : name);

/** A configuration under which a stuck agent is stopped. */
export const stoppingConfig = (more = "") =>
  more + (STOP === "model_not_allowed" ? '\n[prices]\nunpriced = "block"\n' : "");

/**
 * Starts both; gives the proxy's URL, the answers seen so far, what Sprag has on record, what the provider has got, and
 * what its admin can do.
 */
export async function start(config = "") {
  const directory = await mkdtemp(join(tmpdir(), "sprag-node-"));
  await writeFile(join(directory, "sprag.toml"), config);
  // It ends when its standard input closes, so it cannot outlive the tests.
  const mock = spawn(process.env.SPRAG_MOCK_BIN ?? join(target, "sprag-mock"), ["--stdin"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [provider] = await greeting(mock, [/^(\S+)$/]);
  const providers = ["openai", "anthropic", "gemini"].flatMap((name) => ["--provider", `${name}=http://${provider}`]);
  const listeners = ["--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", join(directory, "data")];
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("SPRAG_"));
  const sprag = spawn(process.env.SPRAG_BIN ?? join(target, "sprag"), [...listeners, ...providers], {
    cwd: directory,
    env: { ...Object.fromEntries(environment), SPRAG_LOG_LEVEL: "error", SPRAG_ADMIN_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url, admin] = await greeting(sprag, [/^\s*proxy\s+(http:\S+)$/, /^\s*dashboard\s+(http:\S+?)\/?$/]);
  const { answers, acts, restore } = noteAnswers();
  const stop = async () => {
    restore();
    sprag.kill();
    await once(sprag, "exit");
    mock.stdin.end();
    await rm(directory, { recursive: true });
  };
  const api = adminOf(admin);
  const kill = (run) => api(`runs/default/${encodeURIComponent(run)}/kill`, "POST", { reason: KILL_REASON });
  const deactivate = () => api("agents/default", "PATCH", { active: false });
  const forwarded = async () => (await realFetch(`http://${provider}/__requests`)).json();
  // `sprag run` before the same provider, with a record of its own.
  const program = process.env.SPRAG_BIN ?? join(target, "sprag");
  const runCommand = [program, "run", "--data", join(directory, "commands"), ...providers];
  return { url, runCommand, admin, answers, acts, events: () => settledEvents(api), api, forwarded, kill, deactivate, stop };
}

/** The answer that is the stop is the last one and the only one. */
export function assertStoppedOnce(answers) {
  const reasons = answers.map((answer) => answer.headers.get("x-sprag-blocked"));
  assert.deepEqual(reasons, [...answers.slice(1).map(() => null), STOP]);
  assert.equal(answers.at(-1).headers.get("x-should-retry"), "false");
  assert.equal(new Set(answers.map((answer) => answer.runId)).size, 1);
  if (STOP === "loop_detected") assert.equal(answers.length, 6, "five times the same, and the stop");
}

/** All answers belong to one run and count its steps from 1. */
export function assertOneRun(answers, steps) {
  assert.deepEqual(
    answers.map((answer) => answer.step),
    Array.from({ length: steps }, (_, at) => at + 1),
  );
  assert.equal(new Set(answers.map((answer) => answer.runId)).size, 1);
}

/** The object that Sprag adds, as an SDK handed it out. */
export function assertMetadata(metadata, step, provider, answer) {
  assert.equal(metadata.step, step);
  assert.equal(metadata.total_run_steps, step);
  assert.equal(metadata.provider, provider);
  assert.ok(metadata.cost_usd > 0 && metadata.total_run_cost >= metadata.cost_usd);
  assert.equal(metadata.warning, null);
  assert.equal(metadata.run_id, answer.runId);
}

function adminOf(url) {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  return async (path, method = "GET", order = undefined) => {
    const response = await realFetch(`${url}/api/v1/${path}`, { method, headers, body: JSON.stringify(order) });
    assert.equal(response.status, 200, `${path}: ${response.statusText}`);
    return response.json();
  };
}

/** Every call on record, the oldest first, once nothing is under way any more. */
async function settledEvents(api) {
  for (;;) {
    const { in_flight, recording } = await api("status");
    if (in_flight === 0 && recording.waiting_bytes === 0) break;
  }
  return (await api("events?limit=500")).items.reverse();
}

/** What each pattern finds in the first lines that a program prints. */
async function greeting(program, patterns) {
  const found = [];
  for await (const line of createInterface({ input: program.stdout })) {
    const match = patterns[found.length].exec(line);
    if (match) found.push(match[1]);
    if (found.length === patterns.length) return found;
  }
  throw new Error("the program ended before it said where it listens");
}

/** Notes the heads of answers. `acts` holds what is to happen right before a request is sent, by its number from 1. */
function noteAnswers() {
  const answers = [];
  const acts = {};
  const fetch = globalThis.fetch;
  globalThis.fetch = async (...args) => {
    await acts[answers.length + 1]?.();
    const response = await fetch(...args);
    const { headers, status } = response;
    answers.push({ status, headers, runId: headers.get("x-sprag-run-id"), step: Number(headers.get("x-sprag-step")) });
    return response;
  };
  return { answers, acts, restore: () => (globalThis.fetch = fetch) };
}
