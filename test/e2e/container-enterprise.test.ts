/** The enterprise variant on containers, with TLS, a license and the superuser's login; and the library. */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { openssl } from "./support/authority.ts";
import { browserLack, look, startBrowser } from "./support/browser.ts";
import { runEnterpriseFlow } from "./support/enterprise-flow.ts";
import { repository } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers, "enterprise");
const state: { openSource?: string } = {};
const id = (): string => containers().id("enterprise");

beforeAll(async () => {
  state.openSource = await buildArtifact("oss", containers().folder);
});

test("create --wait ends with a platform that has TLS and a login", async () => {
  await runEnterpriseFlow({
    id: id(),
    folder: containers().folder,
    artifact: artifact(),
    agents: 2,
    machineArguments: ["--node-image", nodeImage],
    run: (words) => containers().run(words),
  });
});

describe.skipIf(browserLack !== undefined)(`in a browser (${browserLack ?? "Chromium"})`, () => {
  // Shows R76.
  test("a browser refuses the web UI until it trusts the authority", async () => {
    const browser = await startBrowser(join(containers().folder, "desktop"));
    const web = (environment: Readonly<Record<string, string>>) =>
      containers().run(["web", "-c", id()], { environment });
    const refused = await browser.visit("refused", web);
    expect(refused).toMatchObject({
      status: 0,
      refusal: expect.stringContaining("ERR_CERT_AUTHORITY_INVALID") as string,
    });
    expect(refused.pages).toEqual([]);

    // As src/platform/README.md says.
    const words = [
      "run",
      "-c",
      id(),
      "--no-test-env",
      ..."curl -ks https://127.0.0.1/ca/cluster-ca.crt".split(" "),
    ];
    const authority = join(containers().folder, "ca.crt");
    await Bun.write(authority, (await containers().run(words)).stdout);
    await browser.trust(authority);
    const { refusal, pages } = await browser.visit("enterprise", web);
    expect(refusal).toBeUndefined();
    expect(pages.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^Cluster Log in User Password/) as string,
      expect.stringMatching(
        new RegExp(`^${id()} Slurm \\S+, enterprise, security strict .*agent-0 \\S+ idle`),
      ) as string,
    ]);
    for (const { width, height, colours } of await Promise.all(
      pages.map(({ picture }) => look(picture)),
    )) {
      expect([width, height]).toEqual([1280, 960]);
      expect(colours).toBeGreaterThan(20);
    }
  });
});

test("destroy removes everything", async () => {
  expect((await containers().run(["destroy", "-c", id()])).status).toBe(0);
  expect(await containers().things(id())).toEqual([]);
});

test("create --wait logs in as the superuser of its configuration, with a password from stdin", async () => {
  const password = "an Operator's pass$word";
  const hash = (await openssl(["passwd", "-6", "-stdin"], `${password}\n`)).trim();
  const extra = join(containers().folder, "extra.yaml");
  const license = "license_key_contents: sample-license";
  await Bun.write(
    extra,
    `superuser_username: operator\nsuperuser_password_hash: ${hash}\n${license}\n`,
  );
  const own = containers().id("operator");
  const words =
    "create --variant enterprise --agents 1 --public-agents 0 --wait --timeout 5m --superuser-password -";
  const created = await containers().run(
    [
      ...words.split(" "),
      "--node-image",
      nodeImage,
      "--extra-config",
      extra,
      "-c",
      own,
      artifact(),
    ],
    { stdin: `${password}\n` },
  );
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${own}\n`,
  });
  expect(created.stderr).toContain(`Cluster "${own}" is ready after`);
  expect((await containers().run(["destroy", "-c", own])).status).toBe(0);
});

const jobs =
  "a job runs: The job ran on agent-0.\nnothing is left of other tests: The file of the other test is gone.\n";

test("the library's example runs on containers, and leaves nothing", async () => {
  const libraryId = containers().id("library");
  const example = join(repository, "test", "e2e", "example", "library-container.ts");
  const child = Bun.spawn([process.execPath, example, state.openSource!, nodeImage, libraryId], {
    env: { PATH: process.env["PATH"] ?? "", XDG_STATE_HOME: join(containers().folder, "state") },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: jobs });
  expect(await containers().things(libraryId)).toEqual([]);
});
