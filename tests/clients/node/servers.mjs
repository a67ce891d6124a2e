// Starts the programs under test: the scripted provider, and Sprag before it, on free ports. Also notes the head of
// every answer that an SDK gets, because frameworks hide them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

const target = join(process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, "../../../target"), "debug");

/** Starts both; gives the proxy's URL, the answers seen so far, and how to stop. */
export async function start() {
  const directory = await mkdtemp(join(tmpdir(), "sprag-node-"));
  // It ends when its standard input closes, so it cannot outlive the tests.
  const mock = spawn(process.env.SPRAG_MOCK_BIN ?? join(target, "sprag-mock"), ["--stdin"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const provider = await lineMatching(mock, /^(\S+)$/);
  const providers = ["openai", "anthropic"].flatMap((name) => ["--provider", `${name}=http://${provider}`]);
  const listeners = ["--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", join(directory, "data")];
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("SPRAG_"));
  const sprag = spawn(process.env.SPRAG_BIN ?? join(target, "sprag"), [...listeners, ...providers], {
    cwd: directory,
    env: { ...Object.fromEntries(environment), SPRAG_LOG_LEVEL: "error" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await lineMatching(sprag, /^\s*proxy\s+(http:\S+)$/);
  const { answers, restore } = noteAnswers();
  const stop = async () => {
    restore();
    sprag.kill();
    await once(sprag, "exit");
    mock.stdin.end();
    await rm(directory, { recursive: true });
  };
  return { url, answers, stop };
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

async function lineMatching(program, pattern) {
  for await (const line of createInterface({ input: program.stdout })) {
    const found = pattern.exec(line);
    if (found) return found[1];
  }
  throw new Error("the program ended before it said where it listens");
}

function noteAnswers() {
  const answers = [];
  const fetch = globalThis.fetch;
  globalThis.fetch = async (...args) => {
    const response = await fetch(...args);
    const { headers, status } = response;
    answers.push({ status, headers, runId: headers.get("x-sprag-run-id"), step: Number(headers.get("x-sprag-step")) });
    return response;
  };
  return { answers, restore: () => (globalThis.fetch = fetch) };
}
