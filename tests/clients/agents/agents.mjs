// The command-line agents under test: how each is started with nothing changed but its base URL, in a home of its own.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Longer than any of them needs; one that goes on asking is cut off here, and its requests are counted. */
const PATIENCE_MS = 120_000;
const bin = join(import.meta.dirname, "node_modules/.bin");

/** Tool and arguments with which the model makes the agent run a command. */
const shell = (tool, key) => (command) => `tool=${tool} args=${JSON.stringify({ [key]: command })}`;

/**
 * `stopStatus` is what Sprag refuses with, `asksAfterCut` how often the agent asks again after an answer that was cut
 * off, `stuckCommand` what the model makes it do for ever.
 */
export const agents = {
  "Claude Code": {
    model: "claude-sonnet-5",
    shell: shell("Bash", "command"),
    stuckCommand: "cat notes.txt",
    stopStatus: 451,
    asksAfterCut: 1,
    command: (model, prompt) => ["claude", "-p", prompt, "--model", model, "--dangerously-skip-permissions"],
    environment: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "sk-ant-test",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      // It may run commands without asking only where it is told that nothing can be harmed.
      IS_SANDBOX: "1",
    }),
    files: () => ({}),
  },

  Codex: {
    model: "gpt-5",
    shell: shell("exec_command", "cmd"),
    stuckCommand: "cat notes.txt",
    stopStatus: 400,
    asksAfterCut: 0,
    command: (model, prompt) => {
      const freely = ["--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"];
      return ["codex", "exec", ...freely, "--model", model, prompt];
    },
    environment: () => ({ OPENAI_API_KEY: "sk-test" }),
    // Under `sprag run` it is told by a flag.
    files: (url) => url && ({
      ".codex/config.toml": `model_provider = "sprag"
[model_providers.sprag]
name = "sprag"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`,
    }),
  },

  "Gemini CLI": {
    model: "gemini-2.5-flash",
    shell: shell("run_shell_command", "command"),
    // Five times the very same command is where its own guard steps in.
    stuckCommand: "cat notes.txt # try $N",
    stopStatus: 400,
    asksAfterCut: 1,
    command: (model, prompt) => ["gemini", "-p", prompt, "--yolo", "-m", model],
    environment: (url) => ({
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: "test",
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    }),
    files: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
      }),
    }),
  },
};

/**
 * Runs an agent to its end; gives its exit code and all that it printed. Without a URL, `wrapper` stands before its command and
 * leads it.
 */
export async function run(agent, url, model, prompt, wrapper = []) {
  const home = await mkdtemp(join(tmpdir(), "sprag-agent-"));
  for (const [name, text] of Object.entries(agent.files(url) ?? {})) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text);
  }
  const [program, ...args] = agent.command(model, prompt);
  const { PATH } = process.env;
  const [first, ...rest] = [...wrapper, join(bin, program), ...args];
  const child = spawn(first, rest, {
    cwd: home,
    env: { PATH, HOME: home, TMPDIR: home, NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1", ...agent.environment(url) },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: PATIENCE_MS,
  });
  let printed = "";
  for (const output of [child.stdout, child.stderr]) output.setEncoding("utf8").on("data", (text) => (printed += text));
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  await rm(home, { recursive: true, force: true, maxRetries: 5 });
  return { code, printed };
}
