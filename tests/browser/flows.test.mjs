// What a person does in the dashboard, in a real browser, while agents work.

import assert from "node:assert/strict";
import { TOKEN } from "../clients/node/servers.mjs";
import { confirm, flow } from "./stage.mjs";

flow("logs in by the form, is refused with a wrong token, and signs out", async (stage) => {
  const page = await stage.open("/runs", { token: null });
  assert.match(page.url(), /\/login$/);
  await page.getByLabel("token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  // The browser itself reports the refusal as an error of the network.
  stage.faults.length = 0;
  await page.getByLabel("token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  const [cookie] = await page.context().cookies();
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/login$/);
  await page.goto(`${stage.sprag.admin}/runs`);
  assert.match(page.url(), /\/login$/);
});

flow("is led to the login when the session ends elsewhere", async (stage) => {
  const page = await stage.open("/runs");
  await page.locator(".live-dot.on").waitFor();
  const other = await page.context().newPage();
  await other.goto(stage.sprag.admin);
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.waitForURL(/\/login$/);
  await page.bringToFront();
  await stage.call("after-the-end");
  await page.waitForURL(/\/login$/);
  // The browser itself reports the 401 that led here.
  stage.faults.length = 0;
});

flow("watches a run appear and grow without a reload", async (stage) => {
  const page = await stage.open("/runs");
  await page.locator(".live-dot.on").waitFor();
  await page.evaluate(() => (window.loadedOnce = true));
  await stage.call("appears-live");
  const row = page.locator("tr", { hasText: "appears-live" });
  await row.waitFor();
  await stage.call("appears-live", { text: "more" });
  await row.locator("td", { hasText: /^2$/ }).waitFor();
  assert.equal(await page.evaluate(() => window.loadedOnce), true, "the page was not loaded again");
});

flow("sees a loop stopped, reads why, and resumes it", async (stage) => {
  const page = await stage.open("/");
  await page.locator(".live-dot.on").waitFor();
  await stage.loop("stuck-build");
  await page.getByText("was called 5 times with the same arguments").first().waitFor();
  await page.getByRole("link", { name: "stuck-build" }).first().click();
  await page.getByText(/Killed/).first().waitFor();
  assert.match(await page.locator("main").innerText(), /shell was called 5 times with the same arguments and gave the same error/);
  assert.ok((await page.locator("svg rect").count()) > 5, "the picture of the run");
  await Promise.all([page.waitForLoadState("load"), page.getByRole("button", { name: "Resume" }).click()]);
  await page.locator("h1 .pill", { hasText: "running" }).waitFor();
  assert.equal((await stage.call("stuck-build", { agent: "fixer", text: "something else" })).status, 200);
});

flow(
  "finds a run that waits for approval, and approves it",
  async (stage) => {
    const refusal = await stage.loop("waits", "fixer");
    assert.match(JSON.stringify(refusal), /run_paused/);
    const page = await stage.open("/runs?status=paused");
    await page.getByRole("link", { name: "waits" }).click();
    await page.locator("h1 .pill", { hasText: "paused" }).waitFor();
    await page.getByText("Paused by Sprag").waitFor();
    assert.equal((await stage.call("waits", { agent: "fixer" })).status, 403, "it waits");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator("h1 .pill", { hasText: "running" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    assert.equal((await stage.call("waits", { agent: "fixer", text: "go on with something else" })).status, 200);
  },
  '[detection.progress]\naction = "pause"\n',
);

flow("kills a run by hand and its stream is cut", async (stage) => {
  await stage.call("to-be-killed");
  const response = await stage.call("to-be-killed", { stream: true, mock: { text: "one two three four five six", delta: "4", stall: "3" } });
  const reader = response.body.getReader();
  await reader.read();
  const page = await stage.open("/run?agent=default&id=to-be-killed");
  await page.getByLabel("Reason").fill("costs too much");
  await confirm(page, "Kill run");
  await page.locator("h1 .pill", { hasText: "killed" }).waitFor();
  const began = Date.now();
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) rest += new TextDecoder().decode(piece.value);
  assert.ok(Date.now() - began < 1000, "cut within a second");
  assert.match(rest, /run_killed/);
  assert.match(rest, /costs too much/);
  const after = await stage.call("to-be-killed");
  assert.equal(after.status, 403);
});

flow("kills several runs at once", async (stage) => {
  for (const run of ["one", "two", "three"]) await stage.call(run);
  const page = await stage.open("/runs");
  for (const run of ["one", "two"]) await page.getByLabel(`Tick ${run}`).check();
  await page.getByLabel("Reason").fill("tidying up");
  await confirm(page, "Kill ticked runs");
  await page.getByRole("status").getByText("2 runs were killed").waitFor();
  const states = await Promise.all(["one", "two", "three"].map(async (run) => (await stage.call(run)).status));
  assert.deepEqual(states, [403, 403, 200]);
});

flow("enables the kill switch and is asked for an alert channel; it deactivates; activates again", async (stage) => {
  await stage.call("first", { agent: "switched" });
  const page = await stage.open("/agent?name=switched");
  const section = page.locator("#kill-switch");
  await section.getByLabel("Kill Switch", { exact: true }).check();
  await section.getByLabel("Window size").fill("5");
  await section.getByLabel("Threshold").fill("2");
  await section.getByRole("button", { name: "Save" }).click();
  await page.getByText("No alert channel is configured").waitFor();
  await page.getByRole("link", { name: /Set up a channel/ }).waitFor();
  await page.getByRole("button", { name: "Enable without" }).click();
  await page.locator("#kill-switch input[type=checkbox]:checked").waitFor();
  const stuck = { agent: "switched", text: "Summarise the quarterly report of the northern region", mock: { text: "Here is the summary of it" } };
  for (let turn = 0; turn < 8; turn++) await stage.call(null, stuck);
  await page.goto(`${stage.sprag.admin}/agents`);
  await page.locator(".pill", { hasText: "Deactivated by Kill Switch" }).waitFor();
  await page.getByRole("link", { name: "switched" }).click();
  await page.locator(".pill", { hasText: "Deactivated by Kill Switch" }).waitFor();
  await page.getByRole("button", { name: "Activate" }).click();
  await page.locator("h1 .pill", { hasText: "Active" }).waitFor();
  const { status, body } = await stage.call("after", { agent: "switched", text: "A new and different task" });
  assert.equal(status, 200);
  assert.notEqual(body.model, "sprag-policy");
});

flow("deactivates and activates an agent by hand", async (stage) => {
  await stage.call("task", { agent: "worker" });
  const page = await stage.open("/agent?name=worker");
  await confirm(page, "Deactivate");
  await page.getByText("Inactive", { exact: true }).first().waitFor();
  assert.match(JSON.stringify((await stage.call("task", { agent: "worker" })).body), /agent_inactive/);
  await page.getByRole("button", { name: "Activate" }).click();
  await page.locator("h1 .pill", { hasText: "Active" }).waitFor();
  assert.doesNotMatch(JSON.stringify((await stage.call("task-2", { agent: "worker" })).body), /agent_inactive/);
});

flow(
  "creates a key, uses it, and revokes it",
  async (stage) => {
    const page = await stage.open("/keys");
    await page.locator("#new [name=agent]").fill("keyed");
    await page.locator("#new [name=name]").fill("laptop");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByText("This is shown once").waitFor();
    assert.doesNotMatch(page.url(), /sk-sprag/);
    const key = (await page.locator("#secret").innerText()).trim();
    assert.match(key, /^sk-sprag-/);
    assert.equal((await stage.call("with-key", { key, isBound: true })).status, 200);
    await page.goto(`${stage.sprag.admin}/keys`);
    assert.doesNotMatch(await page.content(), new RegExp(key));
    await page.getByText("Change", { exact: true }).click();
    await confirm(page, "Revoke");
    await page.locator("tr", { hasText: "laptop" }).getByText(/revoked/i).first().waitFor();
    assert.equal((await stage.call("with-key", { key, isBound: true })).status, 401);
  },
  '[providers.openai]\napi_key = "sk-real"\n',
);

flow("sets a budget and hits it", async (stage) => {
  await stage.call("spends", { agent: "spender", mock: { usage: "input=1000 output=1000" } });
  const page = await stage.open("/budgets");
  await page.locator("#set [name=to]").fill("spender");
  await page.locator("#set [name='budget.daily_limit']").fill("0.02");
  await page.getByRole("button", { name: "Set budget" }).click();
  await page.locator("tr", { hasText: "spender" }).waitFor();
  let last;
  for (let turn = 0; turn < 4 && last?.status !== 402; turn++) {
    last = await stage.call(`spends-${turn}`, { agent: "spender", mock: { usage: "input=1000 output=1000" } });
  }
  assert.equal(last.status, 402, JSON.stringify(last.body));
  await page.goto(`${stage.sprag.admin}/`);
  await page.getByText(/budget/i).first().waitFor();
});

flow("changes a DLP mode, and the next call is stopped", async (stage) => {
  const secret = { agent: "careful", text: "My API key is sk-1234567890abcdef" };
  assert.equal((await stage.call("secret-1", secret)).status, 200);
  const page = await stage.open("/dlp");
  await page.getByText("OPENAI_KEY").first().waitFor();
  assert.doesNotMatch(await page.content(), /1234567890abcdef/);
  await page.locator("#change [name=agent]").fill("careful");
  await page.locator("#change [name=kind]").selectOption("OPENAI_KEY");
  await page.locator("#change [name=mode]").selectOption("strict");
  await page.getByRole("button", { name: "Save mode" }).click();
  await page.getByRole("status").getByText(/Saved/).waitFor();
  const stopped = await stage.call("secret-2", secret);
  assert.equal(stopped.status, 403);
  assert.match(JSON.stringify(stopped.body), /dlp_blocked/);
});

flow("stops everything with the panic button and lifts it", async (stage) => {
  const page = await stage.open("/panic");
  await page.locator("[name=confirm]").fill("stop");
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByText("Everything is stopped").first().waitFor();
  assert.equal((await stage.call("any")).status, 403);
  await confirm(page, "Lift the stop");
  await page.getByRole("button", { name: "Stop everything" }).waitFor();
  assert.equal((await stage.call("any-2")).status, 200);
});

flow("a viewer sees everything and can change nothing", async (stage) => {
  await stage.call("seen");
  const { secret, token } = await stage.sprag.api("tokens", "POST", { name: "looker", role: "viewer" });
  for (const path of ["/", "/runs", "/run?agent=default&id=seen", "/agents", "/agent?name=default", "/budgets", "/keys", "/panic", "/dlp"]) {
    const page = await stage.open(path, { token: secret ?? token });
    const forms = await page.locator("main form[method=post] button:enabled").count();
    assert.equal(forms, 0, path);
    await page.context().close();
  }
});

flow("works by keyboard: skip link, shortcuts, filter", async (stage) => {
  await stage.call("typed");
  const page = await stage.open("/");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.locator("body").click({ position: { x: 700, y: 20 } });
  await page.keyboard.press("g");
  await Promise.all([page.waitForURL(/\/runs$/), page.keyboard.press("r")]);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.name), "agent");
});
