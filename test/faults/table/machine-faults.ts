/** Faults of machines and of the way to them, while a cluster is created. */
import { createServer, type Server, type Socket } from "node:net";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, behaving, created, failed, struck } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const limited =
  (limit: string) =>
  async (world: CloudWorld): Promise<Ended> =>
    world.run([...world.createWords, "--timeout", limit]);

const late: Expected = {
  status: 4,
  id: "deadline-passed",
  says: [/limit/, /master_0|agent_0/],
  keepsCluster: false,
  withinMs: 45_000,
};

/** Something else answers at the addresses of machines that still boot. */
async function impostor(world: CloudWorld, serve: (socket: Socket) => void): Promise<Struck> {
  const servers: Server[] = [];
  const met = { count: 0 };
  const listen = (host: string): void => {
    const server = createServer((socket) => {
      met.count += 1;
      socket.on("error", () => {});
      serve(socket);
    });
    server.on("error", () => {});
    server.listen(22, host);
    servers.push(server);
    setTimeout(() => server.close(), impostorMs);
  };
  const known = new Set<string>();
  const timer = setInterval(() => {
    for (const { publicAddress } of world.cloud.instances()) {
      if (publicAddress === undefined || known.has(publicAddress)) continue;
      known.add(publicAddress);
      listen(publicAddress);
    }
  }, 20);
  world.cloud.behaviour.change({ bootDelayMs: impostorMs + 2_000 });
  return {
    hasStruck: () => met.count > 0,
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      for (const server of servers) server.close();
      world.cloud.behaviour.change({ bootDelayMs: 0 });
    },
  };
}

const impostorMs = 4_000;

const beforeTheBoot = (name: string, serve: (socket: Socket) => void): CloudFault => ({
  name: `${name}, until the machine has booted`,
  place: "way",
  seconds: 12,
  strike: async (world) => impostor(world, serve),
  expected: created,
});

const impostors: readonly CloudFault[] = [
  beforeTheBoot("connections that are closed at once", (socket) => void socket.destroy()),
  beforeTheBoot("connections without a word", () => {}),
  beforeTheBoot(
    "a web server on port 22",
    (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
  ),
  beforeTheBoot("half a banner", (socket) => void socket.end("SSH-2.0-Open")),
  beforeTheBoot("a banner, then nothing", (socket) => void socket.write("SSH-2.0-OpenSSH_9.2\r\n")),
  beforeTheBoot("a flood of bytes", (socket) => void socket.end("x".repeat(200_000))),
];

/** Does something to the first machine as soon as the creation says this. */
const when =
  (said: string, deed: (world: CloudWorld, instanceId: string) => Promise<unknown>) =>
  async (world: CloudWorld): Promise<Ended> => {
    const running = world.start(world.createWords);
    await running.said(said);
    await deed(world, world.cloud.instances()[0]!.instanceId);
    return running.ended;
  };

const lingering = answering({ pattern: "artifact\\.sh --genconf", delayMs: 600_000 });
const machineFailed: Expected = {
  ...failed("machine-failed", /(?:master|agent)_0/),
  withinMs: 45_000,
};
/** The hint of a machine that powered itself off, as its deadline makes it, which a wrong clock brings too early. */
const poweredOff: Expected = {
  ...machineFailed,
  says: [...machineFailed.says, "Its clock may be wrong"],
};

const machines: readonly CloudFault[] = [
  {
    name: "machines that boot eight seconds late",
    place: "machine",
    seconds: 14,
    strike: behaving({ bootDelayMs: 8_000 }),
    expected: created,
  },
  {
    name: "a machine that never boots",
    place: "machine",
    seconds: 25,
    strike: behaving({ bootDelayMs: [0, 600_000] }),
    act: limited("15s"),
    expected: late,
  },
  {
    name: "machines that stay pending",
    place: "machine",
    seconds: 25,
    strike: behaving({ pendingMs: 600_000 }),
    act: limited("15s"),
    expected: { ...late, says: ["exceeded its time limit", "machines to start"] },
  },
  {
    name: "a machine that ends at its launch",
    place: "machine",
    strike: async ({ cloud }) => {
      const message = "Client.VolumeLimitExceeded: Volume limit exceeded";
      cloud.faults.add({
        action: "RunInstances",
        when: "launch",
        times: 1,
        code: "Client.VolumeLimitExceeded",
        message,
      });
      return struck(() => cloud.faults.clear());
    },
    expected: failed("machine-failed", "Volume limit exceeded"),
  },
  {
    name: "a machine is terminated while it boots",
    place: "machine",
    seconds: 12,
    strike: behaving({ bootDelayMs: 600_000 }),
    act: when("to accept SSH logins", async (world, id) => world.terminate([id])),
    expected: machineFailed,
  },
  {
    name: "a machine is terminated during the configuration",
    place: "machine",
    seconds: 12,
    strike: lingering,
    act: when("Configure …", async (world, id) => world.terminate([id])),
    expected: machineFailed,
  },
  {
    name: "a machine loses its power during the configuration",
    place: "machine",
    seconds: 12,
    strike: lingering,
    act: when("Configure …", async ({ cloud }, id) => cloud.kill(id)),
    expected: poweredOff,
  },
  {
    name: "a machine loses its power right after its launch",
    place: "machine",
    seconds: 12,
    strike: behaving({ bootDelayMs: 600_000 }),
    act: when("to accept SSH logins", async ({ cloud }, id) => cloud.kill(id)),
    expected: poweredOff,
  },
  {
    name: "the configuration takes longer than the limit",
    place: "machine",
    seconds: 25,
    strike: lingering,
    act: limited("10s"),
    expected: { ...late, says: ["exceeded its time limit"] },
  },
  {
    name: "the first contact hangs",
    place: "way",
    seconds: 25,
    strike: answering({ pattern: "e2e-first-contact", delayMs: 600_000 }),
    act: limited("10s"),
    expected: late,
  },
];

export const machineFaults: readonly CloudFault[] = [...impostors, ...machines];
