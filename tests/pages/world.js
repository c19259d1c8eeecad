// A real server in a folder of its own, and a real browser that looks at it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const PROGRAM = process.env.HOLDPOINT_PROGRAM ?? "holdpoint";
const BROWSER = process.env.HOLDPOINT_BROWSER ?? "/usr/bin/chromium";
const PICTURES = process.env.HOLDPOINT_PICTURES;

/** How long anything may take. */
export const PATIENCE = 30_000;

/** A server that can be killed and started again, at the same address and with the same store. */
export class Server {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-pages-"));
  listen = "127.0.0.1:0";
  child = null;

  static async start(settings = "") {
    const server = new Server();
    writeFileSync(join(server.folder, "holdpoint.yaml"), settings);
    await server.begin();
    return server;
  }

  get url() {
    return `http://${this.listen}`;
  }

  async begin() {
    // Nothing of the caller's environment: it could hold settings.
    const options = { cwd: this.folder, env: { PATH: process.env.PATH }, stdio: ["ignore", "pipe", "pipe"] };
    this.child = spawn(PROGRAM, ["serve", "--listen", this.listen], options);
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

  /** Reads a session's events until one has this name. */
  async until(session, name) {
    const options = { headers: { Accept: "text/event-stream" }, signal: AbortSignal.timeout(PATIENCE) };
    const response = await fetch(`${this.url}/api/v1/sessions/${session}/events`, options);
    assert.equal(response.status, 200);
    let text = "";
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (text.includes(`event: ${name}\n`)) return;
    }
    throw new Error(`the stream ended without ${name}`);
  }
}

export async function openBrowser() {
  const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"];
  // Chromium's own sandbox does not work for root, which tests in containers are.
  const sandboxed = process.getuid() !== 0;
  return chromium.launch({ executablePath: BROWSER, args, chromiumSandbox: sandboxed });
}

/** A tab that remembers everything that went wrong in it. */
export class Tab {
  troubles = [];

  static async open(browser, url, options = {}) {
    const tab = new Tab();
    tab.context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", ...options });
    tab.page = await tab.context.newPage();
    tab.page.setDefaultTimeout(PATIENCE);
    tab.page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) tab.troubles.push(`${message.text()} (${message.location().url})`);
    });
    tab.page.on("pageerror", (error) => tab.troubles.push(String(error)));
    tab.page.on("requestfailed", (request) => {
      if (!request.url().startsWith(url)) tab.troubles.push(`something was asked of ${request.url()}`);
    });
    await tab.page.goto(url);
    return tab;
  }

  /** Takes back what went wrong and had to, such as a server that was not there. */
  forgive(pattern) {
    this.troubles = this.troubles.filter((trouble) => !pattern.test(trouble));
  }

  async picture(name) {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
  }

  async close() {
    await this.context.close();
    assert.deepEqual(this.troubles, []);
  }
}
