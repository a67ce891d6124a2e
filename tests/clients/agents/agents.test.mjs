// Command-line agents as they come from their registry: they work through Sprag as one run, and one that is stopped
// (stuck, killed, switched off) asks no more than is written here, shows its user why, and ends.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KILL_REASON, STOP, modelFor, start, stoppingConfig } from "../node/servers.mjs";
import { agents, run } from "./agents.mjs";
import { relay } from "./relay.mjs";

const healthy = (agent) => `Read all parts. [[mock:agent steps=9 ${agent.shell("echo part $N")}]]`;
const stalling = "Say something. [[mock:text one two three four five six]] [[mock:delta 4]] [[mock:stall 5]]";

/** Gives a test a Sprag of its own, and the calls that it has on record. */
async function withSprag(config, work) {
  const sprag = await start(config);
  try {
    await work(sprag, async () => (await sprag.events()).filter((event) => event.kind === "llm_call"));
  } finally {
    await sprag.stop();
  }
}

/** Runs an agent through a relay, so that a test can act at an exact moment. */
async function runThrough(sprag, moments, agent, prompt) {
  const between = await relay(sprag.url, moments);
  try {
    return await run(agent, between.url, agent.model, prompt);
  } finally {
    await between.close();
  }
}

function assertOneRun(calls, printed) {
  assert.equal(new Set(calls.map((event) => event.run.id)).size, 1, printed);
}

/** The last call was refused for this reason, and no other was. */
function assertOneStop(calls, reason, printed) {
  const reasons = calls.map((event) => event.block_reason ?? null);
  assert.deepEqual(reasons, [...calls.slice(1).map(() => null), reason], printed);
  assertOneRun(calls, printed);
  assert.match(printed, new RegExp(reason));
}

for (const [name, agent] of Object.entries(agents)) {
  describe(name, () => {
    test("works through Sprag as one run", () =>
      withSprag("", async (sprag, calls) => {
        const prompt = `Read all parts. [[mock:agent steps=3 ${agent.shell("echo part $N")}]]`;
        const { code, printed } = await run(agent, sprag.url, agent.model, prompt);
        assert.match(printed, /Finished after 3 steps\./);
        assert.equal(code, 0, printed);
        const made = await calls();
        assert.ok(made.length >= 4 && made.every((event) => event.status === 200 && !event.blocked), printed);
        assertOneRun(made, printed);
      }));

    for (const form of ["error", "assistant"]) {
      test(`stuck, it is stopped once and says why, form ${form}`, () =>
        withSprag(stoppingConfig(`[responses.reasons.${STOP}]\nform = "${form}"\n`), async (sprag, calls) => {
          const prompt = `Read the notes. [[mock:stuck ${agent.shell(agent.stuckCommand)}]]`;
          const { code, printed } = await run(agent, sprag.url, modelFor(agent.model), prompt);
          const made = await calls();
          assertOneStop(made, STOP, printed);
          assert.equal(made.at(-1).status, form === "assistant" ? 200 : agent.stopStatus);
          assert.equal(code === 0, form === "assistant", printed);
          // At the sixth as a rule; Codex puts random ids into its results, and not every one is told for what it is.
          if (STOP === "loop_detected") assert.ok(made.length >= 6, "five times the same, and the stop");
        }));
    }

    test("killed between two steps, it asks once more and says why", () =>
      withSprag("", async (sprag, calls) => {
        let its;
        const answers = async (_, id) => (its ??= id);
        const asks = async (number) => number === 3 && (await sprag.kill(its));
        const { code, printed } = await runThrough(sprag, { asks, answers }, agent, healthy(agent));
        const made = await calls();
        assertOneStop(made, "run_killed", printed);
        assert.equal(made.length, 3);
        assert.match(printed, new RegExp(KILL_REASON));
        assert.notEqual(code, 0, printed);
      }));

    test(`killed in the middle of an answer, it asks ${agent.asksAfterCut} times more and says why`, () =>
      withSprag("", async (sprag, calls) => {
        const answers = async (number, id) => number === 1 && (await sprag.kill(id));
        const { code, printed } = await runThrough(sprag, { answers }, agent, stalling);
        const [cut, ...after] = await calls();
        assert.deepEqual([cut.status, cut.ending, cut.block_reason], [200, "killed", "run_killed"], printed);
        assert.deepEqual(
          after.map((event) => [event.status, event.block_reason]),
          Array(agent.asksAfterCut).fill([agent.stopStatus, "run_killed"]),
          printed,
        );
        assertOneRun([cut, ...after], printed);
        assert.match(printed, new RegExp(`${KILL_REASON}.*run_killed`));
        assert.notEqual(code, 0, printed);
      }));

    test("switched off between two steps, it ends in good order", () =>
      withSprag("", async (sprag, calls) => {
        const asks = async (number) => number === 3 && (await sprag.deactivate());
        const { code, printed } = await runThrough(sprag, { asks }, agent, healthy(agent));
        const made = await calls();
        assertOneStop(made, "agent_inactive", printed);
        assert.deepEqual([made.length, made.at(-1).status], [3, 200]);
        assert.equal(code, 0, printed);
      }));
  });
}

test("Gemini CLI ends by itself where it calls the same six times", () =>
  withSprag("", async (sprag, calls) => {
    const agent = agents["Gemini CLI"];
    const prompt = `Read the notes. [[mock:stuck ${agent.shell("cat notes.txt")}]]`;
    const { code, printed } = await run(agent, sprag.url, agent.model, prompt);
    const made = await calls();
    assert.deepEqual(made.map((event) => event.block_reason ?? null), Array(6).fill(null), printed);
    assertOneRun(made, printed);
    assert.equal(code, 0, printed);
  }));
