// A Sprag with the scripted provider behind it, agents in front, and a real Chromium that is signed in.
//
// Every page notes what must not happen: messages on the console, errors, requests to another host, and anything that the
// policy for content refused.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { start, TOKEN } from "../clients/node/servers.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

export function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const places = process.env.PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const found = places.find((place) => existsSync(place));
  assert.ok(found, `there is none of ${NAMES.join(", ")} on the path; set CHROMIUM`);
  return found;
}

/** Starts everything; `work` gets it, and it is stopped whatever happens. */
export async function onStage(config, work) {
  const sprag = await start(config);
  const browser = await chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] });
  try {
    await work(new Stage(sprag, browser));
  } finally {
    await browser.close();
    await sprag.stop();
  }
}

/** A test of something that a person does; nothing may be wrong in the browser while they do it. */
export const flow = (name, work, config = "") =>
  test(name, () =>
    onStage(config, async (stage) => {
      await work(stage);
      stage.assertQuiet();
    }),
  );

/** Presses a button that asks before it acts, and says yes. */
export async function confirm(page, name) {
  await page.getByRole("button", { name, exact: true }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await Promise.all([page.waitForLoadState("load"), dialog.getByRole("button").last().click()]);
}

class Stage {
  constructor(sprag, browser) {
    this.sprag = sprag;
    this.browser = browser;
    this.faults = [];
  }

  /** A browser window of its own, signed in unless `token` is null. */
  async open(path = "/", { token = TOKEN, ...options } = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const { host } = new URL(this.sprag.admin);
    page.on("console", (message) => this.note("console", message.type(), message.text()));
    page.on("pageerror", (error) => this.note("error", "", error.message));
    page.on("request", (request) => {
      if (new URL(request.url()).host !== host) this.note("request", "elsewhere", request.url());
    });
    if (token !== null) await page.goto(`${this.sprag.admin}/login?token=${token}`);
    await page.goto(this.sprag.admin + path);
    return page;
  }

  note(where, kind, text) {
    if (where !== "console" || kind === "error" || kind === "warning") this.faults.push(`${where} ${kind}: ${text}`);
  }

  assertQuiet() {
    assert.deepEqual(this.faults, []);
  }

  /** A call of an agent; gives the status and the body. */
  async call(run, { agent = "default", key = "sk-test", text = "hello", messages, stream = false, mock = {}, ...more } = {}) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", ...more.headers };
    if (!more.isBound) headers["x-sprag-agent"] = agent;
    if (run) headers["x-sprag-run-id"] = run;
    for (const [name, value] of Object.entries(mock)) headers[`x-mock-${name}`] = value;
    const body = { model: more.model ?? "gpt-4o", messages: messages ?? [{ role: "user", content: text }], stream };
    const url = `${this.sprag.url}/v1/chat/completions`;
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return stream ? response : { status: response.status, body: await response.json() };
  }

  /** An agent that calls the same tool and reads the same error until it is stopped; gives the refusal. */
  async loop(run, agent = "fixer") {
    const messages = [{ role: "user", content: "Fix the failing build of the payments service." }];
    for (let step = 0; step < 12; step++) {
      const { status, body } = await this.call(run, { agent, messages, mock: { tool: 'name=shell args={"cmd":"npm test"}' } });
      if (status !== 200) return body;
      const said = body.choices[0].message;
      messages.push(said, ...said.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "Error: no such module" })));
    }
    throw new Error("the loop was not stopped");
  }
}
