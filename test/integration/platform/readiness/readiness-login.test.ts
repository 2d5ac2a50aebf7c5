/** The superuser's login. On a platform without TLS, password and token stay on the master. */
import { describe, expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { clusterLayout } from "../../../../src/platform/layouts/cluster.ts";
import { parseSuperuserAnswers } from "../../../../src/platform/readiness/ask-web.ts";
import {
  createMastersChecker,
  type Wait,
} from "../../../../src/platform/readiness/masters-checker.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  machinesLack,
  startMachines,
  type FolderMachines,
} from "../../../support/install-machine.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { makeAuthority, startWeb, type Answer } from "./readiness-web.ts";

const loginPath = "/acs/api/v1/auth/login";
const password = 'p4ss"w\\örd';
const { signal } = new AbortController();

/** On the machine, curl reaches a different web server from the one at the node's address. */
const programs = {
  curl: `#!/bin/sh
echo "$*" >>"$MACHINE/curl.log"
port=$(cat "$MACHINE/web-port")
exec /usr/bin/curl --connect-to "127.0.0.1:80:127.0.0.1:$port" --header "Host: 127.0.0.1:$port" "$@"
`,
};

interface Checked {
  readonly waits: readonly Wait[];
  /** Requests over the network, and those of the master to itself, as `METHOD path`. */
  readonly onNetwork: readonly string[];
  readonly onMaster: readonly string[];
  readonly commands: string;
}

async function check(answers: Readonly<Record<string, () => Answer>>): Promise<Checked> {
  await using machines = await startMachines({ roles: ["master"], programs });
  await using network = startWeb({}, undefined);
  await using own = startWeb(answers, undefined);
  const [machine] = machines.machines;
  const { httpPort } = own.of(machine!.node).web;
  await machine!.write("web-port", String(httpPort));
  const waits = await checkOnce(machines, network.of(machine!.node));
  const commands = `${machine!.commands.join("\n")}\n${await machine!.read("curl.log").catch(() => "")}`;
  return { waits, onNetwork: network.requests, onMaster: own.requests, commands };
}

const checkOnce = async (
  { connections }: Pick<FolderMachines, "connections">,
  master: FolderMachines["nodes"][number],
  checker = createMastersChecker(systemClock),
  isTlsEnabled = false,
): Promise<readonly Wait[]> =>
  checker(
    {
      variant: "enterprise",
      layout: clusterLayout,
      isTlsEnabled,
      masters: [master],
      agentCount: 1,
      login: { username: "admin", password },
      connections,
    },
    signal,
  );

const token = { status: 200, body: { token: "abc.def-1_2" } };

describe.skipIf(machinesLack !== undefined)("a login without TLS", () => {
  // Shows R137.
  test("is sent on the master itself; only the page is requested over the network", async () => {
    const { waits, onNetwork, onMaster, commands } = await check({
      [loginPath]: () => token,
      "/nodes": () => ({ status: 200, body: [{}] }),
    });
    expect(waits).toEqual([]);
    expect(onNetwork).toEqual(["GET /"]);
    expect(onMaster).toEqual([`POST ${loginPath}`, "GET /nodes"]);
    expect(commands).toContain("e2e-superuser");
    for (const secret of ["p4ss", "abc.def"]) expect(commands).not.toContain(secret);
  });

  test("sends the exact name and password, and the token that it got", async () => {
    await using machines = await startMachines({ roles: ["master"], programs });
    await using network = startWeb({}, undefined);
    const seen: (readonly [unknown, string | null])[] = [];
    using own = serveOnLoopback(async (request) => {
      const { pathname } = new URL(request.url);
      seen.push([
        pathname === loginPath ? await request.json() : pathname,
        request.headers.get("authorization"),
      ]);
      return Response.json(pathname === loginPath ? token.body : [{}]);
    });
    await machines.machines[0]!.write("web-port", String(own.port));
    expect(await checkOnce(machines, network.of(machines.nodes[0]!))).toEqual([]);
    expect(seen).toEqual([
      [{ uid: "admin", password }, null],
      ["/nodes", "token=abc.def-1_2"],
    ]);
  });

  test("retries for half a minute, because a platform that has just started may reject the right password", async () => {
    await using machines = await startMachines({ roles: ["master"], programs });
    await using network = startWeb({}, undefined);
    const answer = { status: 401 };
    await using own = startWeb({ [loginPath]: () => answer }, undefined);
    const [machine] = machines.machines;
    await machine!.write("web-port", String(own.of(machine!.node).web.httpPort));
    const time = { nowMs: 0 };
    const checker = createMastersChecker({ ...systemClock, passed: () => time.nowMs });
    const ask = async (nowMs: number, status: number): Promise<readonly Wait[]> => {
      time.nowMs = nowMs;
      answer.status = status;
      return checkOnce(machines, network.of(machine!.node), checker);
    };
    const refused = [{ subject: "master_0", reason: "login: the superuser was refused" }];
    expect(await ask(0, 401)).toEqual(refused);
    // A different response in between restarts the time.
    expect(await ask(29_000, 503)).toMatchObject([{ reason: "login: status 503" }]);
    expect(await ask(31_000, 401)).toEqual(refused);
    expect(await ask(60_000, 401)).toEqual(refused);
    const error = await failureOf(ask(61_000, 401));
    expect(error).toMatchObject({ id: "login-refused" });
    expect(JSON.stringify([error, String(error)])).not.toContain("p4ss");
  });

  test.each([
    ["a login that is not up yet", { [loginPath]: () => ({ status: 503 }) }, "login: status 503"],
    ["no token", { [loginPath]: () => ({ status: 200, body: {} }) }, "login: status 200"],
    [
      "a token that is a line of curl's configuration",
      { [loginPath]: () => ({ status: 200, body: { token: 'x"\noutput = "/etc/passwd' } }) },
      "login: status 200",
    ],
    [
      "agents that are missing",
      { [loginPath]: () => token, "/nodes": () => ({ status: 200, body: [] }) },
      "0 of 1 agent registered",
    ],
    [
      "agents that cannot be listed",
      { [loginPath]: () => token, "/nodes": () => ({ status: 500 }) },
      "it does not list the agents: status 500",
    ],
  ])("waits for %s", async (_name, answers: Readonly<Record<string, () => Answer>>, reason) => {
    expect((await check(answers)).waits).toEqual([{ subject: "master_0", reason }]);
  });
});

/** A node that can be asked only for this text. */
const saying = (stdout: string) =>
  ({
    connect: async () => ({ run: async () => ({ status: 0, stdout, stderr: "" }) }),
  }) as unknown as ConnectionPool;

const anyNode = { id: "i-0", role: "master", index: 0, state: "running", ssh: {} } as NodeRecord;

test("a master whose own connection fails is waited for", async () => {
  await using network = startWeb({}, undefined);
  const lost = new ClusterError("connection-failed", "The connection was lost.", {
    transient: true,
  });
  const connections = { connect: async () => Promise.reject(lost) } as unknown as ConnectionPool;
  expect(await checkOnce({ connections }, network.of(anyNode))).toEqual([
    { subject: "master_0", reason: "login: The connection was lost." },
  ]);
});

describe("a login over TLS", () => {
  /** Checks a master whose web server has a certificate of the cluster's authority. */
  async function checkOverTls(
    answers: Readonly<Record<string, (request: Request) => Answer>>,
    isUp = true,
  ) {
    await using folder = await scratchFolder();
    const authority = await makeAuthority(folder.path);
    await using web = startWeb(answers, await authority.issue("127.0.0.1"));
    const node = web.of(anyNode);
    if (!isUp) await web[Symbol.asyncDispose]();
    const connections = saying(authority.certificate);
    const waits = await checkOnce({ connections }, node, createMastersChecker(systemClock), true);
    return { waits, requests: web.requests };
  }

  const listed = (request: Request): Answer =>
    request.headers.get("authorization") === "token=abc.def-1_2"
      ? { status: 200, body: [{}] }
      : { status: 401 };

  test("is sent from here, and its token lists the agents", async () => {
    const { waits, requests } = await checkOverTls({ [loginPath]: () => token, "/nodes": listed });
    expect(waits).toEqual([]);
    expect(requests).toEqual(["GET /", `POST ${loginPath}`, "GET /nodes"]);
  });

  test.each([
    ["a login that is not up yet", { status: 503 }, "login: status 503"],
    ["a login that is refused", { status: 401 }, "login: the superuser was refused"],
    ["a login that returns no token", { status: 200, body: {} }, "login: status 200"],
    ["a login whose answer is no object", { status: 200, body: null }, "login: status 200"],
    ["a login whose token is no text", { status: 200, body: { token: 1 } }, "login: status 200"],
  ])("waits for %s", async (_name, answer, reason) => {
    const { waits, requests } = await checkOverTls({ [loginPath]: () => answer, "/nodes": listed });
    expect(waits).toEqual([{ subject: "master_0", reason }]);
    expect(requests).not.toContain("GET /nodes");
  });

  test("waits for a master that refuses connections", async () => {
    const { waits } = await checkOverTls({}, false);
    expect(waits).toEqual([
      { subject: "master_0", reason: "HTTPS at 127.0.0.1: it refuses the connection" },
    ]);
  });
});

test.each([
  "",
  "login 200",
  "login 2000\n",
  "login 200\nelse\n",
  "x\nlogin 200\n",
  "login 200\nagents x\n",
  "\u0000",
])("an answer of an unexpected shape is rejected: %j", (text) => {
  expect(parseSuperuserAnswers(text)).toBeUndefined();
});
