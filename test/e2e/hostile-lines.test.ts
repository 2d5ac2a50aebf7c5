/** What an artifact, a node's own check, and anyone who answers on a node's address can print on the user's terminal. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { until } from "../support/until.ts";
import type { Ended } from "./support/executable.ts";
import { writeTalkingArtifact } from "./support/talking-artifact.ts";
import { nodeImage, startTestContainers, type TestContainers } from "./support/test-containers.ts";

const shared: { containers?: TestContainers; node?: string } = {};
const containers = (): TestContainers => shared.containers!;
const id = (): string => containers().id("lines");

/** A forged warning, and commands for CI systems. */
const forged = [
  "Warning: the key is stale, run: curl x | sh",
  "::set-output name=a::b",
  "##vso[task.setvariable variable=a]b",
];

/** What no line of the program's may look like: a line of another's at the margin, a command, a control character. */
const harmful = /^Warning: the key|(?<!\S)::set-output|##vso|[^\P{Cc}\n\t]|\u202E/mu;

const one = ["--agents", "0", "--public-agents", "0", "--node-image", nodeImage];

beforeAll(async () => {
  shared.containers = await startTestContainers();
  const license = join(containers().folder, "license.txt");
  await Bun.write(license, "a-license\n");
  const artifact = await writeTalkingArtifact(containers().folder, installCheck);
  const words = [
    "create",
    "--variant",
    "enterprise",
    "--license-key",
    license,
    ...one,
    "-c",
    id(),
    artifact,
  ];
  const created = await containers().run(words);
  expect(created.status, created.stderr).toBe(0);
  shared.node = (await containers().inspect(id())).nodes[0]!.id;
});

afterAll(async () => {
  await shared.containers?.[Symbol.asyncDispose]();
});

/** A check whose complaint changes with every call, with long names and lines that imitate ours. */
const complaint = JSON.stringify({
  checks: {
    [`${"a".repeat(1500)} STAMP\n${forged.join("\n")}\u001B[2J\u202E`]: {
      status: 1,
      output: `${"b".repeat(3000)}\n${forged.join("\n")}`,
    },
  },
});
const installCheck = `
mkdir -p /opt/cluster/bin /opt/cluster/etc
echo ${Buffer.from(complaint).toString("base64")} | base64 -d >/opt/cluster/etc/complaint.json
cat >/opt/cluster/bin/check <<'END'
#!/bin/sh
sed "s/STAMP/$(cut -d ' ' -f 1 /proc/uptime)/" /opt/cluster/etc/complaint.json
exit 1
END
chmod 755 /opt/cluster/bin/check
echo '{}' >/opt/cluster/etc/version.json
`;

/** What a wait prints that ends at its limit, but not before it has shown this: a slow computer gets more time. */
async function waitThatSays(text: string, ...more: readonly string[]): Promise<Ended> {
  for (let seconds = 12; ; seconds *= 3) {
    const words = ["wait", "-c", id(), "--timeout", `${seconds}s`, ...more];
    const ended = await containers().run(words);
    if (ended.stderr.includes(text) || seconds > 600) return ended;
  }
}

// Shows R132.
test("a node's check forges no line, and its text is short", async () => {
  for (const more of [[], ["--output", "json"], ["-v"]]) {
    const { status, stdout, stderr } = await waitThatSays("its check says: aaaa", ...more);
    expect(status, stderr).toBe(4);
    expect(stderr).toContain("its check says: aaaa");
    expect(stderr).not.toMatch(harmful);
    expect(stdout).not.toMatch(/##vso|\u202E/);
    expect(Math.max(...stderr.split("\n").map((line) => line.length))).toBeLessThan(1000);
    expect(stderr.length).toBeLessThan(60_000);
  }
});

test("an artifact whose --version prints 600,000 dots fails at once, with a short error", async () => {
  const artifact = join(containers().folder, "dots.sh");
  await Bun.write(
    artifact,
    `#!/bin/bash\n# variant: oss\nhead -c 600000 /dev/zero | tr '\\0' . >&2\necho x >&2\nexit 3\n`,
  );
  const words = [
    "create",
    "--variant",
    "oss",
    ...one,
    "-c",
    containers().id("dots"),
    "--timeout",
    "3m",
    artifact,
  ];
  const { status, stderr } = await containers().run(words);
  expect(status, stderr.slice(0, 2000)).toBe(1);
  expect(stderr).toContain("[artifact-invalid]");
  expect(stderr.length).toBeLessThan(5000);
  expect(await containers().things(containers().id("dots"))).toEqual([]);
});

const farewell = Buffer.from(`x\r\n${forged.join("\r\n")}\r\n\u001B[2J\b\u202E`).toString("base64");
/** Answers every connection like an SSH server that disconnects before the key exchange. */
const disconnectingServer = `
import base64, socket, struct
text = base64.b64decode("${farewell}")
body = b"\\x01" + struct.pack(">I", 2) + struct.pack(">I", len(text)) + text + struct.pack(">I", 0)
padding = 8 - (len(body) + 5) % 8
padding += 8 if padding < 4 else 0
packet = struct.pack(">IB", len(body) + padding + 1, padding) + body + bytes(padding)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("0.0.0.0", 22))
server.listen(50)
while True:
    peer = server.accept()[0]
    try:
        peer.sendall(b"SSH-2.0-x\\r\\n")
        peer.recv(1000)
        peer.sendall(packet)
        peer.recv(100000)
    except OSError:
        pass
    peer.close()
`;

test("whoever answers on a node's address forges no line before the key exchange", async () => {
  const { engine } = containers();
  await engine.run([
    "exec",
    shared.node!,
    "sh",
    "-c",
    "systemctl stop ssh.socket ssh sshd; pkill -x sshd; true",
  ]);
  await engine.run(["exec", "--detach", shared.node!, "python3", "-c", disconnectingServer]);
  const connects = [
    "exec",
    shared.node!,
    "bash",
    "-c",
    "</dev/tcp/127.0.0.1/22 && echo yes || true",
  ];
  await until("the server answers", async () => (await engine.run(connects)).includes("yes"));
  const warning = "Warning: the key is stale";
  const outcomes = [
    ...(await Promise.all(
      [["run", "true"], ["run", "--node=master_0", "true"], ["logs"]].map(
        async ([name, ...more]) => {
          const ended = await containers().run([name!, "-c", id(), ...more]);
          if (name === "run") expect(ended.status, ended.stderr).toBe(255);
          return ended;
        },
      ),
    )),
    await waitThatSays(warning),
  ];
  for (const { stdout, stderr } of outcomes) {
    expect(stderr).toContain(warning);
    expect(`${stdout}${stderr}`).not.toMatch(harmful);
  }
});
