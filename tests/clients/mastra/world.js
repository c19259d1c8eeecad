// A real server with agents whose models reply from scripts, and the world behind their tools, which counts.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PROGRAM = process.env.HOLDPOINT_PROGRAM ?? "holdpoint";

/** How long anything may take. */
export const PATIENCE = 60_000;

const DELETE = `
    - name: deleteFile
      description: Delete a file
      parameters: { type: object, required: [path], properties: { path: { type: string } } }
      http: { method: POST, url: "\${TOOLS}/deleteFile", timeout_seconds: 60 }
      approval: required`;

const TIME = `
    - name: getTime
      description: Get time
      parameters: { type: object, required: [zone], properties: { zone: { type: string } } }
      http: { method: POST, url: "\${TOOLS}/getTime", timeout_seconds: 60 }
      effects: read_only
      approval: never`;

const ASK = `
    - ref: builtin/ask_user_question`;

const call = (tool, args) => ({ tool, arguments: args });
const END = {
  either: [
    { if_error: true, text: "I was told: {result}" },
    { text: "Done. The tool says: {result}" },
  ],
};

const DELETES = [{ text: "I will delete it.", calls: [call("deleteFile", { path: "a.txt" })] }, END];

/** Each agent: its tools, what its model replies, turn by turn, and settings of its own. */
const AGENTS = {
  "file-agent": [DELETE, DELETES],
  "queue-agent": [DELETE, DELETES, "on_message_while_held: queue"],
  "supersede-agent": [DELETE, DELETES, "on_message_while_held: supersede"],
  "brief-agent": [DELETE.replace("approval: required", "approval: { timeout_seconds: 1 }"), DELETES],
  "pair-agent": [
    DELETE,
    [{ calls: [call("deleteFile", { path: "one.txt" }), call("deleteFile", { path: "two.txt" })] }, { text: "Both done." }],
  ],
  "time-agent": [TIME, [{ calls: [call("getTime", { zone: "UTC" })] }, END]],
  "ask-agent": [
    ASK,
    [
      {
        calls: [
          call("ask_user_question", {
            questions: [{ question: "Which env?", options: [{ label: "prod" }, { label: "test" }] }],
          }),
        ],
      },
      END,
    ],
  ],
};

function agentFile(name, tools, setting = "") {
  return `apiVersion: holdpoint/v1
kind: Agent
metadata: { name: ${name}, description: An agent of these tests }
spec:
  type: chat_model_agent
  model: { primary: scripted/${name}.json }
  system_prompt: You manage files.
  ${setting}
  tools:${tools}
`;
}

/** The world behind the tools: counts what reached it, and answers when the test lets it. */
export class Tools {
  calls = [];
  #waiting = [];
  #arrivals = [];
  #isOpen = true;

  static async start() {
    const tools = new Tools();
    tools.server = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => (body += piece));
      request.on("end", () => {
        tools.calls.push(`${request.url.slice(1)} ${body}`);
        for (const arrival of tools.#arrivals) arrival();
        const answer = () => {
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify({ done: JSON.parse(body) }));
        };
        if (tools.#isOpen) answer();
        else tools.#waiting.push(answer);
      });
    });
    await new Promise((done) => tools.server.listen(0, "127.0.0.1", done));
    tools.url = `http://127.0.0.1:${tools.server.address().port}`;
    return tools;
  }

  /** From now on nothing is answered. */
  close() {
    this.#isOpen = false;
  }

  /** Everything is answered again. */
  open() {
    this.#isOpen = true;
    for (const answer of this.#waiting.splice(0)) answer();
  }

  /** Ends when so many calls have reached it. */
  async arrived(count) {
    while (this.calls.length < count) await new Promise((done) => this.#arrivals.push(done));
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** A server that can be killed and started again, at the same address and with the same store. */
export class Server {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-mastra-"));
  listen = "127.0.0.1:0";
  child = null;

  static async start(tools, settings = "") {
    const server = new Server();
    server.tools = tools;
    mkdirSync(join(server.folder, "agents"));
    writeFileSync(join(server.folder, "holdpoint.yaml"), settings);
    for (const [name, [its, replies, setting]] of Object.entries(AGENTS)) {
      writeFileSync(join(server.folder, "agents", `${name}.yaml`), agentFile(name, its, setting));
      writeFileSync(join(server.folder, "agents", `${name}.json`), JSON.stringify({ replies }));
    }
    await server.begin();
    return server;
  }

  get url() {
    return `http://${this.listen}`;
  }

  async begin() {
    // Nothing of the caller's environment: it could hold settings.
    const env = { PATH: process.env.PATH, TOOLS: this.tools.url };
    const options = { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] };
    // The tests ask as fast as the machine lets them, which is no caller's ordinary pace.
    const pace = ["--requests-per-second", "10000", "--requests-burst", "10000"];
    this.child = spawn(PROGRAM, ["serve", "--listen", this.listen, "--strict", ...pace], options);
    let complaint = "";
    this.child.stderr.on("data", (text) => (complaint = (complaint + text).slice(-10_000)));
    for await (const line of createInterface({ input: this.child.stdout })) {
      const address = line.match(/ serves http:\/\/(\S+)/)?.[1];
      if (address) {
        this.listen = address;
        this.child.stdout.resume();
        return;
      }
    }
    throw new Error(`the server did not start: ${complaint}`);
  }

  /** Ends it as a power cut would. */
  async kill() {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGKILL");
    await ended;
  }

  async end() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
