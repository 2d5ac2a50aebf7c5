/** The function that gives logins to a node its container's proxy, as each start runs it, and what units make of it. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import passProxy from "../../../../../src/backend/container/launch/pass-proxy.sh" with { type: "text" };
import runnerStart from "../../../../../src/platform/install/runner-start.sh" with { type: "text" };
import { shellText } from "../../../../../src/ssh/shell-text.ts";
import { runShell } from "../../../../support/prepare-machine.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const url = "http://user:secret-word@proxy.example.test:3128";
const direct = "localhost,127.0.0.1,::1,172.18.0.2,master-0,172.18.0.3,agent-0";
const passed = [
  `http_proxy=${url}`,
  `HTTP_PROXY=${url}`,
  `no_proxy=${direct}`,
  `NO_PROXY=${direct}`,
];
const both = { http_proxy: url, HTTP_PROXY: url };

async function machine() {
  const folder = await scratchFolder();
  const file = join(folder.path, "environment-of-logins");
  await Bun.write(join(folder.path, "hosts"), "172.18.0.2 master-0\n172.18.0.3 agent-0\n");
  const script = `${shellText(passProxy, { STATE: folder.path })}pass_proxy '${file}'\n`;
  return {
    write: async (text: string) => Bun.write(file, text),
    start: async (environment: Record<string, string>) =>
      runShell(["sh", "-eu"], script, { PATH: process.env["PATH"]!, ...environment }),
    lines: async () => (await Bun.file(file).text()).split("\n").filter((line) => line !== ""),
    unit: async () => {
      const values = {
        FOLDER: folder.path,
        LOG_FILE: "log",
        BOOTSTRAP_URL: "",
        LOGIN_ENVIRONMENT: file,
      };
      const text = `${shellText(runnerStart, values)}env\n`;
      await runShell(["sh", "-c", text], "", { PATH: process.env["PATH"]! });
      const log = await Bun.file(join(folder.path, "log")).text();
      return log.split("\n").filter((line) => /proxy|^LANG/i.test(line));
    },
    [Symbol.asyncDispose]: async () => folder[Symbol.asyncDispose](),
  };
}

describe("a node's logins", () => {
  test("get the proxy, but not for the nodes, once however often the node starts", async () => {
    await using node = await machine();
    await node.write("LANG=C");
    for (const _ of [1, 2]) {
      expect(await node.start(both)).toEqual({ status: 0, stdout: "", stderr: "" });
      expect(await node.lines()).toEqual(["LANG=C", ...passed]);
    }
  });

  test("keep the exceptions that the engine names", async () => {
    await using node = await machine();
    await node.start({ https_proxy: url, NO_PROXY: ".example.test,10.0.0.0/8" });
    const exceptions = `.example.test,10.0.0.0/8,${direct}`;
    expect(await node.lines()).toEqual([
      `https_proxy=${url}`,
      `no_proxy=${exceptions}`,
      `NO_PROXY=${exceptions}`,
    ]);
  });

  test("get nothing without a proxy, and lose one that the container no longer has", async () => {
    await using node = await machine();
    expect(await node.start({ no_proxy: "x" })).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await node.lines()).toEqual([]);
    await node.start(both);
    await node.start({});
    expect(await node.lines()).toEqual([]);
  });

  test("keep a proxy of the node's own, and what the node makes of ours", async () => {
    await using node = await machine();
    const own = ['export HTTPS_PROXY="http://own.example.test:1"'];
    await node.write(`${own[0]}\n`);
    for (const _ of [1, 2]) {
      await node.start(both);
      expect(await node.lines()).toEqual(own);
    }
    await using other = await machine();
    await other.start(both);
    await other.write("LANG=C\n");
    await other.start(both);
    expect(await other.lines()).toEqual(["LANG=C"]);
  });

  test.each([
    "http://localhost:3128",
    "localhost:3128",
    "http://user:secret-word@127.0.0.1:3128/",
    "http://127.0.0.1",
    "http://[::1]:3128",
    "socks5://0.0.0.0:1080",
  ])("do not get a proxy on loopback, which nodes can't reach: %s", async (loopback) => {
    await using node = await machine();
    const ended = await node.start({
      http_proxy: loopback,
      https_proxy: "http://localhost.example.test",
    });
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe(
      "http_proxy names this computer's own loopback address, which nodes cannot reach: left out.\n",
    );
    expect((await node.lines())[0]).toBe("https_proxy=http://localhost.example.test");
  });

  test.each([
    "http://a b",
    "http://a\nLD_PRELOAD=/x",
    "http://a#b",
    'http://"a"',
    "http://$HOME",
    "http://a\\b",
  ])("do not get a text that would mean something else to them: %j", async (text) => {
    await using node = await machine();
    expect(await node.start({ http_proxy: text })).toEqual({
      status: 0,
      stdout: "",
      stderr: "http_proxy has characters that the node cannot keep: left out.\n",
    });
    expect(await node.lines()).toEqual([]);
  });
});

describe("a unit that installs", () => {
  test("has the proxy of the node's logins, and nothing else of theirs", async () => {
    await using node = await machine();
    await node.write("LANG=x\n# http_proxy=no\n");
    await node.start(both);
    expect((await node.unit()).toSorted()).toEqual(passed.toSorted());
  });

  test("reads what a node's own file may say, and does without one", async () => {
    await using node = await machine();
    expect(await node.unit()).toEqual([]);
    await node.write("export https_proxy=\"http://a:1\"\nNO_PROXY='b,c'\nno_proxy=$(touch x)\n");
    expect((await node.unit()).toSorted()).toEqual([
      "NO_PROXY=b,c",
      "https_proxy=http://a:1",
      "no_proxy=$(touch x)",
    ]);
  });
});
