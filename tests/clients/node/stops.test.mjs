// A stuck agent in every SDK: it is stopped once, makes no request after that, and tells its user why. The SDKs keep
// their own retries: the proof is that they do not use them.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { agents, shown } from "./agents.mjs";
import { STOP, assertStoppedOnce, start, stoppingConfig } from "./servers.mjs";

const stuck = 'Read the notes. [[mock:stuck tool=look_up args={"key":"notes.txt"}]]';

for (const form of ["error", "assistant"]) {
  describe(`a stuck agent is stopped once, form ${form}`, () => {
    let sprag;
    before(async () => {
      sprag = await start(stoppingConfig(`[responses.reasons.${STOP}]\nform = "${form}"\n`));
    });
    beforeEach(() => sprag.answers.splice(0));
    after(() => sprag.stop());

    for (const [name, run] of Object.entries(agents)) {
      for (const stream of [false, true]) {
        test(`${name}, ${stream ? "streamed" : "plain"}`, async () => {
          if (form === "assistant") {
            assert.match(await run(sprag.url, stream, stuck), new RegExp(STOP));
          } else {
            await assert.rejects(run(sprag.url, stream, stuck), (error) => {
              assert.match(shown(error), new RegExp(STOP));
              return true;
            });
          }
          assertStoppedOnce(sprag.answers);
          assert.equal(sprag.answers.at(-1).status === 200, form === "assistant");
          const blocked = (await sprag.events()).filter((event) => event.blocked);
          assert.equal(blocked.at(-1).block_reason, STOP);
        });
      }
    }
  });
}
