// Command-line agents under `sprag run`, with no base URL set anywhere: healthy they are untouched, stuck they are ended.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { start } from "../node/servers.mjs";
import { agents, run } from "./agents.mjs";

/** Runs an agent under `sprag run`; gives its exit code, what it printed, and the report. */
async function guarded(agent, prompt) {
  const sprag = await start();
  const file = join(tmpdir(), `sprag-report-${process.pid}-${Math.random()}.json`);
  try {
    const wrapper = [...sprag.runCommand, `--json=${file}`, "--"];
    const ended = await run(agent, undefined, agent.model, prompt, wrapper);
    return { ...ended, report: JSON.parse(await readFile(file, "utf8")) };
  } finally {
    await sprag.stop();
  }
}

for (const [name, agent] of Object.entries(agents)) {
  describe(`${name} under sprag run`, () => {
    test("is untouched while it works", async () => {
      const prompt = `Read all parts. [[mock:agent steps=9 ${agent.shell("echo part $N")}]]`;
      const { code, printed, report } = await guarded(agent, prompt);
      assert.equal(code, 0, printed);
      assert.match(printed, /Finished after 9 steps\./);
      assert.doesNotMatch(printed, /Reconnecting/, "nothing was tried again and again");
      assert.ok(report.totals.steps >= 10 && report.totals.refused === 0, printed);
      assert.deepEqual([report.totals.runs, report.stopped], [1, null], printed);
      assert.ok(report.totals.cost_nano_usd > 0, printed);
    });

    test("is ended when it is stuck", async () => {
      const prompt = `Read the notes. [[mock:stuck ${agent.shell(agent.stuckCommand)}]]`;
      const { code, printed, report } = await guarded(agent, prompt);
      assert.equal(code, 3, printed);
      assert.equal(report.stopped.reason, "loop_detected", printed);
      assert.match(printed, /sprag: stopped \w+: Going in circles \(loop_detected\)/);
    });
  });
}
