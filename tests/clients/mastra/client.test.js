// The client of Mastra, as it is published, in a version of today and an older one.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { MastraClient as Today } from "@mastra/client-js";
import { MastraClient as Older } from "mastra-client-older";
import { PATIENCE, Server, Tools } from "./world.js";

for (const [version, MastraClient] of [["today", Today], ["older", Older]]) {
  describe(`the client of ${version}`, { timeout: 5 * PATIENCE }, () => {
    let tools, server, client, complaints, sent;
    const says = console.error;
    const fetches = globalThis.fetch;

    before(async () => {
      tools = await Tools.start();
      server = await Server.start(tools);
      client = new MastraClient({ baseUrl: server.url });
    });

    after(async () => {
      await server.end();
      tools.end();
    });

    beforeEach(() => {
      tools.calls.length = 0;
      tools.open();
      complaints = [];
      sent = 0;
      // The client complains here of chunks that it does not understand.
      console.error = (...words) => complaints.push(words.join(" "));
      globalThis.fetch = (...request) => {
        sent += 1;
        return fetches(...request);
      };
    });

    afterEach(() => {
      console.error = says;
      globalThis.fetch = fetches;
      assert.deepEqual(complaints, []);
    });

    /** Reads a stream to its end. */
    async function read(stream) {
      const chunks = [];
      await stream.processDataStream({ onChunk: async (chunk) => void chunks.push(chunk) });
      return chunks;
    }

    const types = (chunks) => chunks.map((chunk) => chunk.type).filter((type, at, all) => type !== all[at - 1]);
    const of = (chunks, type) => chunks.filter((chunk) => chunk.type === type).map((chunk) => chunk.payload);
    const text = (chunks) => of(chunks, "text-delta").map((payload) => payload.text).join("");

    /** What a refusal looks like. The older client has nothing but the message, and sends again whatever was refused. */
    const refused = (status, code) => (error) => {
      assert.match(error.message, new RegExp(`${status}.*"code":"${code}"`));
      if (version === "today") assert.equal(error.status, status);
      return true;
    };

    /** A run that waits. */
    async function held(agent = "file-agent", message = "delete a.txt", options = {}) {
      const chunks = await read(await client.getAgent(agent).stream(message, options));
      const waiting = of(chunks, "tool-call-approval");
      return { chunks, runId: chunks[0].runId, waiting, toolCallId: waiting[0]?.toolCallId };
    }

    it("lists agents and shows one with its tools", async () => {
      const all = await client.listAgents();
      assert.deepEqual(Object.keys(all).sort(), ["ask-agent", "brief-agent", "file-agent", "pair-agent", "queue-agent", "supersede-agent", "time-agent"]);
      const one = await client.getAgent("file-agent").details();
      assert.equal(one.name, "file-agent");
      assert.equal(one.tools.deleteFile.id, "deleteFile");
    });

    it("streams to the approval, approves, and reads on", async () => {
      const { chunks, runId, toolCallId, waiting } = await held();
      assert.equal(types(chunks).at(-1), "tool-call-approval");
      assert.deepEqual(waiting[0].args, { path: "a.txt" });
      assert.deepEqual(tools.calls, []);
      const resumed = await read(await client.getAgent("file-agent").approveToolCall({ runId, toolCallId }));
      assert.deepEqual(types(resumed), [
        "tool-call", "tool-result", "step-finish", "step-start", "text-start", "text-delta", "text-end", "step-finish", "finish",
      ]);
      assert.deepEqual(tools.calls, ['deleteFile {"path":"a.txt"}']);
      assert.match(text(resumed), /^Done\. The tool says: /);
    });

    it("approves from inside the first stream", async () => {
      const resumed = [];
      const agent = client.getAgent("file-agent");
      const stream = await agent.stream("delete a.txt");
      await stream.processDataStream({
        onChunk: async (chunk) => {
          if (chunk.type !== "tool-call-approval") return;
          const { toolCallId } = chunk.payload;
          resumed.push(...(await read(await agent.approveToolCall({ runId: chunk.runId, toolCallId }))));
        },
      });
      assert.equal(types(resumed).at(-1), "finish");
      assert.equal(tools.calls.length, 1);
    });

    it("declines with a reason, and the tool never runs", async () => {
      const { runId, toolCallId } = await held();
      const decline = { runId, toolCallId, reason: "policy forbids it" };
      const resumed = await read(await client.getAgent("file-agent").declineToolCall(decline));
      assert.deepEqual(of(resumed, "tool-output-denied")[0].approval, {
        id: toolCallId, approved: false, reason: "policy forbids it",
      });
      assert.equal(text(resumed), "I was told: policy forbids it");
      assert.deepEqual(tools.calls, []);
    });

    it("generates to the suspension, and approves or declines to the answer", async () => {
      const agent = client.getAgent("file-agent");
      const paused = await agent.generate("delete a.txt");
      assert.equal(paused.finishReason, "suspended");
      const { runId, suspendPayload: { toolCallId } } = paused;
      const done = await agent.approveToolCallGenerate({ runId, toolCallId });
      assert.equal(done.finishReason, "stop");
      assert.match(done.text, /^I will delete it\.Done\. The tool says: /);
      const other = await agent.generate("delete a.txt");
      const declined = await agent.declineToolCallGenerate({ runId: other.runId, toolCallId: other.suspendPayload.toolCallId });
      assert.match(declined.text, /I was told: Tool call was not approved by the user$/);
      assert.equal(tools.calls.length, 1);
    });

    it("decides two calls in either order", async () => {
      for (const order of [[0, 1], [1, 0]]) {
        const { runId, waiting } = await held("pair-agent");
        assert.equal(waiting.length, 2);
        const agent = client.getAgent("pair-agent");
        const [first, second] = order.map((index) => waiting[index].toolCallId);
        const partly = await read(await agent.approveToolCall({ runId, toolCallId: first }));
        assert.equal(types(partly).at(-1), "tool-call-approval");
        const rest = await read(await agent.declineToolCall({ runId, toolCallId: second }));
        assert.equal(types(rest).at(-1), "finish");
      }
      assert.deepEqual(tools.calls, ['deleteFile {"path":"one.txt"}', 'deleteFile {"path":"two.txt"}']);
    });

    it("is told of a contrary decision, and does not send it again", async () => {
      const { runId, toolCallId } = await held();
      const agent = client.getAgent("file-agent");
      await read(await agent.approveToolCall({ runId, toolCallId }));
      sent = 0;
      await assert.rejects(agent.declineToolCall({ runId, toolCallId }), refused(409, "already_decided"));
      if (version === "today") assert.equal(sent, 1);
      for (const [where, what] of [["file-agent", { runId: "nowhere", toolCallId }], ["pair-agent", { runId, toolCallId }]]) {
        await assert.rejects(client.getAgent(where).approveToolCall(what), refused(404, "run_not_found"));
      }
      if (version === "today") assert.equal(sent, 3);
      assert.equal(tools.calls.length, 1);
    });

    it("is told that nobody decided in time, and the tool never runs", async () => {
      const agent = client.getAgent("brief-agent");
      // A stream that is held open goes on when the time is up.
      const { chunks, runId, toolCallId } = await held("brief-agent", "delete a.txt", { holdOpen: true });
      assert.equal(of(chunks, "tool-output-denied")[0].toolCallId, toolCallId);
      assert.equal(types(chunks).at(-1), "finish");
      sent = 0;
      await assert.rejects(agent.approveToolCall({ runId, toolCallId }), refused(410, "expired"));
      if (version === "today") assert.equal(sent, 1);
      assert.deepEqual(tools.calls, []);
    });

    it("says something while a call waits, and the agent's file says what becomes of it", async () => {
      const memory = { thread: `between-${version}`, resource: "user-1" };
      for (const [name, last] of [["queue-agent", "tool-call-approval"], ["supersede-agent", "finish"]]) {
        const { runId, toolCallId } = await held(name, "delete a.txt", { memory });
        const agent = client.getAgent(name);
        const chunks = await read(await agent.stream("wait a moment", { memory }));
        assert.equal(chunks[0].runId, runId);
        assert.equal(types(chunks).at(-1), last);
        if (name === "queue-agent") {
          assert.equal(types(await read(await agent.approveToolCall({ runId, toolCallId }))).at(-1), "finish");
        } else {
          await assert.rejects(agent.approveToolCall({ runId, toolCallId }), refused(409, "already_decided"));
        }
      }
      assert.equal(tools.calls.length, 1);
      const other = await held("file-agent", "delete a.txt", { memory });
      await assert.rejects(client.getAgent("file-agent").stream("hi", { memory }), refused(409, "thread_busy"));
      await read(await client.getAgent("file-agent").declineToolCall({ runId: other.runId, toolCallId: other.toolCallId }));
    });

    it("approves twice at once, a hundred times, and the tool runs a hundred times", async () => {
      const agent = client.getAgent("file-agent");
      for (let round = 1; round <= 100; round += 1) {
        const { runId, toolCallId } = await held();
        const approve = async () => read(await agent.approveToolCall({ runId, toolCallId }));
        for (const chunks of await Promise.all([approve(), approve()])) assert.equal(types(chunks).at(-1), "finish");
        assert.equal(tools.calls.length, round);
      }
    });

    it("hangs up while the tool runs, and finds the rest by approving again", async () => {
      const { runId, toolCallId } = await held();
      tools.close();
      const gone = await fetches(`${server.url}/api/agents/file-agent/approve-tool-call`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ runId, toolCallId }),
      });
      await tools.arrived(1);
      await gone.body.cancel();
      const second = client.getAgent("file-agent").approveToolCall({ runId, toolCallId });
      tools.open();
      const resumed = await read(await second);
      assert.equal(of(resumed, "tool-result").length, 1);
      assert.equal(types(resumed).at(-1), "finish");
      assert.equal(tools.calls.length, 1);
    });

    it("holds every call when it asks for that, and names its own run", async () => {
      const options = { requireToolApproval: true, runId: `fixed-${version}` };
      const { runId, waiting, toolCallId } = await held("time-agent", "what time", options);
      assert.equal(runId, `fixed-${version}`);
      assert.equal(waiting[0].toolName, "getTime");
      assert.deepEqual(tools.calls, []);
      const resumed = await read(await client.getAgent("time-agent").approveToolCall({ runId, toolCallId }));
      assert.equal(resumed[0].runId, `fixed-${version}`);
      assert.equal(tools.calls.length, 1);
    });

    it("finds what waits in a thread after the server was killed, and approves it", async () => {
      const memory = { thread: `th-${version}`, resource: "user-1" };
      const { runId, toolCallId } = await held("file-agent", "delete a.txt", { memory });
      await server.kill();
      await server.begin();
      const agent = client.getAgent("file-agent");
      if (agent.listSuspendedRuns) {
        const { runs, total } = await agent.listSuspendedRuns({ threadId: memory.thread, resourceId: "user-1" });
        assert.equal(total, 1);
        assert.equal(runs[0].runId, runId);
        assert.equal(runs[0].toolCalls[0].toolCallId, toolCallId);
      }
      if (client.listThreadMessages) {
        const { messages } = await client.listThreadMessages(memory.thread, { agentId: "file-agent" });
        assert.equal(messages.at(-1).content.metadata.pendingToolApprovals[toolCallId].runId, runId);
      }
      if (agent.sendToolApproval) {
        const approval = { resourceId: "user-1", threadId: memory.thread, toolCallId, approved: true };
        assert.deepEqual(await agent.sendToolApproval(approval), { accepted: true, runId, toolCallId });
      }
      const resumed = await read(await agent.approveToolCall({ runId, toolCallId }));
      assert.equal(types(resumed).at(-1), "finish");
      assert.equal(tools.calls.length, 1);
    });

    it("answers a question with data", async (test) => {
      const agent = client.getAgent("ask-agent");
      if (!agent.resumeStream) return test.skip("this version has no resumeStream");
      const chunks = await read(await agent.stream("ask me"));
      const [asked] = of(chunks, "tool-call-suspended");
      assert.equal(asked.suspendPayload.questions[0].question, "Which env?");
      const options = { runId: chunks[0].runId, toolCallId: asked.toolCallId };
      await assert.rejects(agent.resumeStream({ answer: "nowhere" }, options), { status: 400 });
      const resumed = await read(await agent.resumeStream({ answer: "prod" }, options));
      assert.deepEqual(of(resumed, "tool-result")[0].result, { answers: { "Which env?": "prod" } });
    });

    it("never runs a tool again that was under way when the server was killed", async () => {
      const { runId, toolCallId } = await held();
      tools.close();
      const agent = client.getAgent("file-agent");
      const lost = agent.approveToolCall({ runId, toolCallId }).then(read).catch((error) => error);
      await tools.arrived(1);
      await server.kill();
      await lost;
      complaints.length = 0;
      await server.begin();
      tools.open();
      const resumed = await read(await agent.approveToolCall({ runId, toolCallId }));
      const [doubt] = of(resumed, "tool-call-suspended");
      assert.equal(doubt.suspendPayload.type, "in_doubt");
      assert.equal(tools.calls.length, 1);
      if (!agent.resumeStream) return;
      const settled = await agent.resumeStream({ outcome: "happened" }, { runId, toolCallId: doubt.toolCallId });
      assert.equal(types(await read(settled)).at(-1), "finish");
      assert.equal(tools.calls.length, 1);
    });
  });
}

it("speaks under another prefix", { timeout: PATIENCE }, async () => {
  const tools = await Tools.start();
  const server = await Server.start(tools, "protocols: { mastra: { prefix: /mastra } }\n");
  try {
    const client = new Today({ baseUrl: `${server.url}/`, apiPrefix: "/mastra" });
    assert.ok((await client.listAgents())["file-agent"]);
  } finally {
    await server.end();
    tools.end();
  }
});
