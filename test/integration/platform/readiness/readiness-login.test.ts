/** The superuser's login on a platform without TLS: password and token stay on the master. */
import { describe, expect, test } from "bun:test";
import { layoutOf } from "../../../../src/platform/layouts/find-layout.ts";
import { parseSuperuserAnswers } from "../../../../src/platform/readiness/ask-on-master.ts";
import { createMastersChecker } from "../../../../src/platform/readiness/masters-checker.ts";
import type { Wait } from "../../../../src/platform/readiness/masters-checker.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import type { FolderMachines } from "../../../support/install-machine.ts";
import { startWeb } from "./readiness-web.ts";
import type { Answer } from "./readiness-web.ts";

const loginPath = "/acs/api/v1/auth/login";
const password = 'p4ss"w\\örd';
const { signal } = new AbortController();

/** On the machine, curl reaches a different web server from the one at the node's address. */
const programs = {
  curl: `#!/bin/sh
echo "$*" >>"$MACHINE/curl.log"
exec /usr/bin/curl --connect-to "127.0.0.1:80:127.0.0.1:$(cat "$MACHINE/web-port")" "$@"
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
  machines: FolderMachines,
  master: FolderMachines["nodes"][number],
  checker = createMastersChecker(systemClock),
): Promise<readonly Wait[]> =>
  checker.check(
    {
      variant: "enterprise",
      layout: layoutOf("cluster"),
      isTlsEnabled: false,
      masters: [master],
      agentCount: 1,
      login: { username: "admin", password },
      connections: machines.connections,
    },
    signal,
  );

const token = { status: 200, body: { token: "abc.def-1_2" } };

describe.skipIf(machinesLack !== undefined)("a login without TLS", () => {
  // Shows R126.
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
    using own = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        seen.push([pathname === loginPath ? await request.json() : pathname, request.headers.get("authorization")]);
        return Response.json(pathname === loginPath ? token.body : [{}]);
      },
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
    const checker = createMastersChecker({ ...systemClock, now: () => time.nowMs });
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
      "0 of 1 agents are registered",
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

test.each(["", "login 200", "login 2000\n", "login 200\nelse\n", "x\nlogin 200\n", "login 200\nagents x\n", "\u0000"])(
  "an answer of an unexpected shape is rejected: %j",
  (text) => {
    expect(parseSuperuserAnswers(text)).toBeUndefined();
  },
);
