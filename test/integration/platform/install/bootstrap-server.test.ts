/** The bootstrap server alone, with each Python of this machine. As on a node, it reads a settings file and ends by itself. */
import { describe, expect, test } from "bun:test";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import bootstrapServer from "../../../../src/platform/install/bootstrap/bootstrap-server.py" with { type: "text" };
import { freePort } from "../../../support/free-port.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const secret = "0123456789abcdef0123456789abcdef";
const [master, agent, foreign] = ["127.31.0.1", "127.31.0.2", "127.31.0.3"] as const;
const canRun = (name: string): boolean =>
  Bun.which(name) !== null && Bun.spawnSync([name, "--version"]).success;
const pythons = process.platform === "linux" ? ["python3", "python2.7"].filter(canRun) : [];

interface RunningServer extends AsyncDisposable {
  readonly ended: Promise<number>;
  readonly state: () => Promise<string>;
  /** Sends `text` (Latin 1) from the address `from`, and returns the server's response. */
  talk(from: string, text: string): Promise<string>;
  /** Connects a client that sends nothing. `closed` resolves when the server closes the connection. */
  hang(from: string): Promise<{ readonly socket: Socket; readonly closed: Promise<void> }>;
  again(): Promise<RunningServer>;
}

async function startServer(
  python: string,
  secondsLeft = 600,
  text = bootstrapServer,
): Promise<RunningServer> {
  const scratch = await scratchFolder();
  const folder = join(scratch.path, "genconf", "serve");
  await mkdir(join(folder, "packages", "a--1"), { recursive: true });
  await writeFile(join(scratch.path, "genconf", "config.yaml"), "license");
  await writeFile(join(folder, "install.sh"), "install me", { mode: 0o600 });
  await writeFile(join(folder, "packages", "a--1", "a+b.tar"), "x".repeat(3_000_000), {
    mode: 0o600,
  });
  await symlink("../config.yaml", join(folder, "out"));
  await symlink("install.sh", join(folder, "latest"));
  const port = await freePort();
  const state = join(scratch.path, "state");
  const deadline = Math.round(Date.now() / 1000) + secondsLeft;
  const settings = {
    folder,
    state,
    address: master,
    port,
    secret,
    nodes: [master, agent],
    deadline,
  };
  await writeFile(join(scratch.path, "settings.json"), JSON.stringify(settings));
  await writeFile(join(scratch.path, "server.py"), text);
  return runServer({
    python,
    folder: scratch.path,
    port,
    dispose: async () => scratch[Symbol.asyncDispose](),
  });
}

interface Place {
  readonly python: string;
  readonly folder: string;
  readonly port: number;
  readonly dispose: () => Promise<void>;
}

async function runServer(place: Place): Promise<RunningServer> {
  const { python, folder, port, dispose } = place;
  const child = Bun.spawn([python, join(folder, "server.py"), join(folder, "settings.json")], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(join(folder, "stderr")),
  });
  const from = (localAddress: string): Socket => {
    const socket = connect({ host: master, port, localAddress });
    // Before the server listens, the system may choose the same port for this end: the socket is connected to itself.
    const isOwn = (): boolean => socket.localPort === port && socket.localAddress === master;
    return socket.on("connect", () => (isOwn() ? socket.destroy() : socket));
  };
  const talk = async (address: string, text: string): Promise<string> => {
    const socket = from(address);
    const chunks: Buffer[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.on("data", (chunk) => chunks.push(chunk));
    for (const end of ["end", "error", "close"]) socket.on(end, () => resolve());
    socket.write(text);
    await promise;
    socket.destroy();
    return Buffer.concat(chunks).toString("latin1");
  };
  for (let tries = 0; child.exitCode === null && tries < 200; tries += 1) {
    if ((await talk(master, "GET / HTTP/1.0\r\n\r\n")) !== "") break;
    await Bun.sleep(20);
  }
  return {
    ended: child.exited,
    state: async () => readFile(join(folder, "state"), "utf8"),
    talk,
    hang: async (address) => {
      const socket = from(address);
      const closed = new Promise<void>(
        (resolve) => void socket.on("error", () => {}).on("close", () => resolve()),
      );
      await new Promise((resolve) => void socket.on("connect", resolve));
      socket.resume();
      return { socket, closed };
    },
    again: async () => {
      child.kill("SIGKILL");
      await child.exited;
      return runServer(place);
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
      await dispose();
    },
  };
}

const get = (path: string, method = "GET"): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const statusOf = (answer: string): string => /^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? "none";
const bodyOf = (answer: string): string => answer.slice(answer.indexOf("\r\n\r\n") + 4);

describe.each(pythons)("under %s", (python) => {
  test("a node that knows the path gets each file completely, also through links inside the folder", async () => {
    await using server = await startServer(python);
    expect(bodyOf(await server.talk(agent, get(`/${secret}/install.sh`)))).toBe("install me");
    expect(bodyOf(await server.talk(agent, get(`/${secret}/latest?x=1`)))).toBe("install me");
    const [plain, encoded] = await Promise.all(
      ["a+b", "a%2Bb"].map(async (name) =>
        server.talk(agent, get(`/${secret}/packages/a--1/${name}.tar`)),
      ),
    );
    expect(bodyOf(plain!).length).toBe(3_000_000);
    expect(encoded).toBe(plain);
    const head = await server.talk(agent, get(`/${secret}/install.sh`, "HEAD"));
    expect([statusOf(head), bodyOf(head)]).toEqual(["200", ""]);
    expect(head).toContain("Content-Length: 10\r\n");
  });

  test.each([
    "/",
    "/install.sh",
    `/${secret.slice(1)}/install.sh`,
    `/${secret}0/install.sh`,
    `/${secret.toUpperCase()}/install.sh`,
    `//${secret}/install.sh`,
    `${secret}/install.sh`,
    `http://x/${secret}/install.sh`,
    `/${secret}`,
    `/${secret}/`,
    `/${secret}/packages`,
    `/${secret}/packages/`,
    `/${secret}/out`,
    `/${secret}/../config.yaml`,
    `/${secret}/packages/../install.sh`,
    `/${secret}/%2e%2e/config.yaml`,
    `/${secret}/..%2fconfig.yaml`,
    `/${secret}//etc/passwd`,
    `/${secret}/install.sh%00`,
    "/\u0000\u00ff",
  ])("%j is not found", async (path) => {
    await using server = await startServer(python);
    const answer = await server.talk(agent, get(path));
    expect([statusOf(answer), bodyOf(answer)]).toEqual(["404", ""]);
  });

  test("an unknown client gets no data, even with the path", async () => {
    await using server = await startServer(python);
    expect(await server.talk(foreign, get(`/${secret}/install.sh`))).toBe("");
    expect(await server.talk(foreign, get(`/${secret}/installed`, "POST"))).toBe("");
    expect(await server.state()).toBe("");
  });

  test("an invalid or overlong request is disconnected", async () => {
    await using server = await startServer(python);
    for (const text of [
      "\r\n\r\n",
      `GET ${"/x".repeat(5000)}`,
      `GET /${secret}/install.sh\r\n\r\n`,
    ])
      expect(await server.talk(agent, text)).toBe("");
  });

  test("idle clients block neither other nodes nor the end", async () => {
    await using server = await startServer(python);
    const mute = await Promise.all(Array.from({ length: 60 }, async () => server.hang(agent)));
    expect(statusOf(await server.talk(master, get(`/${secret}/install.sh`)))).toBe("200");
    await Promise.all(mute.map(async ({ closed }) => closed));
    expect(statusOf(await server.talk(agent, get(`/${secret}/install.sh`)))).toBe("200");
  });

  // Shows R136.
  test("it ends once every node has reported that it is done, and remembers these reports after a restart", async () => {
    await using first = await startServer(python);
    for (const request of [
      get(`/${secret}/installed`),
      get("/installed", "POST"),
      get(`/x/installed`, "POST"),
    ])
      expect(statusOf(await first.talk(agent, request))).toBe("404");
    expect(statusOf(await first.talk(agent, get(`/${secret}/installed`, "POST")))).toBe("204");
    expect(statusOf(await first.talk(agent, get(`/${secret}/installed`, "POST")))).toBe("204");
    expect(await first.state()).toBe(`${agent}\n`);
    const second = await first.again();
    expect(statusOf(await second.talk(agent, get(`/${secret}/install.sh`)))).toBe("200");
    expect(statusOf(await second.talk(master, get(`/${secret}/installed`, "POST")))).toBe("204");
    expect(await second.ended).toBe(0);
    expect(await second.state()).toBe(`${agent}\n${master}\nfinished\n`);
    expect(await second.talk(agent, get(`/${secret}/install.sh`))).toBe("");
  });

  test("it ends at its deadline, and starts nothing after it", async () => {
    await using server = await startServer(python, 2);
    expect(await server.ended).toBe(0);
    expect(await server.state()).toBe("finished\n");
    await using late = await startServer(python, -1);
    expect(await late.ended).toBe(0);
    expect(await late.state()).toBe("finished\n");
  });

  test("a clock that is set to a time after the deadline doesn't end it", async () => {
    // The server asks for the time once, when it begins.
    const count = "import time\nreal = time.time\ncalls = []\n";
    const jump =
      "time.time = lambda: real() + (9999 if calls.append(0) or len(calls) > 1 else 0)\n";
    await using server = await startServer(python, 600, count + jump + bootstrapServer);
    await Bun.sleep(2_000);
    expect(statusOf(await server.talk(agent, get(`/${secret}/install.sh`)))).toBe("200");
  });
});
