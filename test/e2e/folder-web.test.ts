/** A packed folder from a web server, with a web UI of its own behind TLS, on the machines of the local cloud. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmod, cp } from "node:fs/promises";
import { join } from "node:path";
import { longEnough } from "../support/long-enough.ts";
import { type ArtifactServer, serveArtifact } from "./support/artifact-server.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud; server?: ArtifactServer; sha256?: string } = {};
const cloud = (): TestCloud => state.cloud!;

/** The local cloud leads to no other port of its machines. */
const facts = `
ports: [9000]
web: { port: 80, path: /status, scheme: https, certificate: /etc/meter/ca.pem }
`;

/** Only masters have a web UI. */
const install = `
[ "$1" = master ] || exit 0
mkdir -p /srv/meter
echo up >/srv/meter/status
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=meter \\
  -addext "subjectAltName=IP:$CLUSTER_PRIVATE_ADDRESS" -keyout /etc/meter/key.pem -out /etc/meter/ca.pem
systemd-run --unit=meter-web --working-directory=/srv/meter python3 "$PWD/serve.py"
`;

const serve = `
import http.server, ssl
server = http.server.HTTPServer(("", 80), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/etc/meter/ca.pem", "/etc/meter/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
`;

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  const folder = join(cloud().folder, "meter");
  const artifact = join(cloud().folder, "meter.sh");
  await cp(join(import.meta.dir, "support", "meter"), folder, { recursive: true });
  const extend = async (name: string, text: string): Promise<void> => {
    const path = join(folder, name);
    await Bun.write(path, (await Bun.file(path).text()) + text);
  };
  await extend("platform.yaml", facts);
  await extend("install", install);
  await chmod(join(folder, "install"), 0o755);
  await Bun.write(join(folder, "serve.py"), serve);
  expect(await cloud().run(["pack", "--output-file", artifact, folder])).toMatchObject({
    status: 0,
  });
  state.sha256 = createHash("sha256")
    .update(await Bun.file(artifact).bytes())
    .digest("hex");
  state.server = await serveArtifact(artifact, cloud().gatewayAddress);
});

afterAll(async () => {
  await state.server?.[Symbol.asyncDispose]();
  await state.cloud?.[Symbol.asyncDispose]();
});

const create = (...words: readonly string[]) =>
  cloud().run([
    ..."create --linux-distribution debian-12 --agents 1".split(" "),
    "--artifact-sha256",
    state.sha256!,
    ...words,
    state.server!.url,
  ]);

test("the first bytes of the artifact tell which ports are open, and how many nodes there may be", async () => {
  const ran = await create("--dry-run");
  expect(ran.status, ran.stderr).toBe(0);
  expect(ran.stdout).toMatch(/^Platform +meter 1\.0$/m);
  expect(ran.stdout).toContain("TCP 22, 80, 9000 from");
  expect(ran.stdout).toContain("1 master, 1 agent, 0 public agents");
  expect(state.server!.requests).toMatchObject([{ range: "bytes=0-16383" }]);
  const refused = await create("--dry-run", "--public-agents", "1");
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("--public-agents: the platform meter allows at most 0, not 1");
});

test("create --wait waits for the web UI, whose certificate is of the authority on the masters", async () => {
  const created = await create("--wait", "--timeout", "14m");
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: "default\n",
  });
});

test("inspect and web show where it is", async () => {
  const { webUi, nodes } = await cloud().inspect("default");
  const [master] = nodes.filter(({ role }) => role === "master");
  expect(webUi).toBe(`https://${master!.publicAddress}:80/status`);
  const web = await cloud().run(["web"]);
  expect(web).toMatchObject({ status: 0, stdout: `${webUi}\n` });
  expect(web.stderr.replaceAll(/\s+/g, " ")).toContain(
    "certificate authority: /etc/meter/ca.pem on the masters",
  );
  const { stdout: certificate } = await cloud().run([
    "run",
    "--no-test-env",
    "cat /etc/meter/ca.pem",
  ]);
  const checkServerIdentity = (): undefined => undefined;
  const answer = await fetch(webUi, { tls: { ca: certificate, checkServerIdentity } });
  expect(await answer.text()).toBe("up\n");
});

test("wait says what the web UI lacks", async () => {
  await cloud().run(["run", "--no-test-env", "systemctl stop meter-web"]);
  await longEnough(5_000, async (limitMs) => {
    const waited = await cloud().run(["wait", "--timeout", `${limitMs / 1000}s`]);
    expect(waited.status).toBe(4);
    return /^  master_0: HTTPS at \S+: \S/m.test(waited.stderr);
  });
  expect(await cloud().run(["wait", "--skip-http-checks"])).toMatchObject({ status: 0 });
});
