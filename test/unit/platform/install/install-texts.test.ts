import { layoutOf } from "../../../support/layout-of.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { describe, expect, test } from "bun:test";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import {
  bootstrapOriginOf,
  genconfFiles,
} from "../../../../src/platform/configuration/install-configuration.ts";
import type { PlanForNodes } from "../../../../src/platform/install/install-plan.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { curlConfig, megabytes } from "../../../../src/platform/install/fetch-artifact.ts";
import { installRunner } from "../../../../src/platform/install/start-install.ts";
import { upgradeRunner } from "../../../../src/platform/upgrade/start-upgrade.ts";
import { reasonOf } from "../../../../src/platform/install/phase.ts";
import { bootstrapPort } from "../../../../src/platform/install/bootstrap/serve.ts";
import {
  added,
  exampleCluster,
  examplePlan,
  exampleTraits,
} from "../../../support/install-example.ts";

const node = (role: NodeRecord["role"], privateAddress: string | undefined): NodeRecord => ({
  id: `i-${role}`,
  role,
  index: 0,
  state: "running",
  publicAddress: undefined,
  privateAddress,
  ssh: { host: "h", port: 22, user: "u" },
  web: { host: "h", httpPort: 80, httpsPort: 443 },
});
const cluster = exampleCluster(
  [node("master", "10.0.0.1"), node("agent", "10.0.0.2")],
  "enterprise",
);

const facts = {
  resolvers: ["10.0.0.53"],
  bootstrapUrl: "http://10.0.0.1:18080/0123456789abcdef",
  layout: layoutOf("cluster"),
  release: "1.0",
};

const planForNodes = (changes: Partial<PlanForNodes>): PlanForNodes => ({
  ...examplePlan("/a", {}),
  ...exampleTraits,
  ...changes,
});

async function configOf(changes: Partial<PlanForNodes>): Promise<unknown> {
  const files = await genconfFiles(
    planForNodes({ variant: "enterprise", ...changes }),
    cluster,
    facts,
  );
  const [config] = files;
  expect(config).toMatchObject({ path: "config.yaml", mode: 0o600 });
  return Bun.YAML.parse((config!.source as { text: string }).text);
}

describe("what goes into genconf", () => {
  test("holds the license, and the security mode over the user's own configuration", async () => {
    const configuration = {
      ...added({ security: "permissive" }),
      licenseKey: "key",
      securityMode: "strict",
    } as const;
    expect(await configOf({ configuration })).toMatchObject({
      bootstrap_url: "http://10.0.0.1:18080/0123456789abcdef",
      master_list: ["10.0.0.1"],
      agent_list: ["10.0.0.2"],
      public_agent_list: [],
      resolvers: ["10.0.0.53"],
      license_key_contents: "key",
      security: "strict",
    });
  });

  test("is the library's own configuration alone where that is given", async () => {
    expect(await configOf({ configuration: { kind: "complete", values: { a: 1 } } })).toEqual({
      a: 1,
    });
  });

  test.each([
    ["http://10.0.0.1:18080", "http://10.0.0.1:18080/0123456789abcdef"],
    ["http://10.0.0.1:18080/", "http://10.0.0.1:18080/0123456789abcdef"],
    ["http://10.0.0.1:80", "http://10.0.0.1:80"],
    ["http://example.org/own", "http://example.org/own"],
  ])(
    "leads to the secret path where the library's configuration names our server: %s",
    async (given, expected) => {
      const configuration = { kind: "complete", values: { bootstrap_url: given } } as const;
      expect(await configOf({ configuration })).toEqual({ bootstrap_url: expected });
    },
  );

  test("names the public detector where there is one, the user's before the backend's", async () => {
    expect(await configOf({})).not.toHaveProperty("ip_detect_public_filename");
    expect(await configOf({ ipDetectPublic: "#!/bin/sh\n" })).toMatchObject({
      ip_detect_public_filename: "genconf/ip-detect-public",
    });
    const ofBackend = await genconfFiles(
      planForNodes({ ipDetectPublic: "#!/bin/sh\n" }),
      cluster,
      facts,
    );
    const source = { text: "#!/bin/sh\n" };
    expect(ofBackend).toContainEqual({ path: "ip-detect-public", source, mode: 0o755 });
    const own = {
      source: "/own",
      device: 1,
      inode: 2,
      modifiedMs: 3,
      target: "ip-detect-public",
      mode: 0o755,
      sizeBytes: 1,
    };
    const plan = planForNodes({ ipDetectPublic: "#!/bin/sh\n", genconfFiles: [own] });
    const files = await genconfFiles(plan, cluster, facts);
    const detectors = files.filter((file) => file.path === "ip-detect-public");
    expect(detectors).toEqual([{ path: "ip-detect-public", source: { file: own }, mode: 0o755 }]);
  });

  test("needs a private address of every node", () => {
    expect(() => bootstrapOriginOf(node("master", undefined))).toThrow(
      "master_0 (i-master) has no private address.",
    );
  });
});

test("the bootstrap server's port is none that a platform or its users need", () => {
  const port = bootstrapPort(layouts);
  for (const layout of layouts)
    expect([...layout.masterPorts, ...layout.publicPorts]).not.toContain(port);
  const taken = { ...layouts[0], masterPorts: [port, port + 1], publicPorts: [port + 2] };
  expect(bootstrapPort([taken])).toBe(port + 3);
});

test("a node waits for whole seconds, because its shell cannot add fractions, and for a minute at least", () => {
  const [url, layout] = ["http://10.0.0.1:18080/0123456789abcdef", layoutOf("folder")];
  const upgrade = upgradeRunner(layout.upgrade!, "agent", {
    url,
    script: "upgrade.sh",
    from: "1",
    to: "2",
  });
  for (const text of [installRunner(layout, "agent", { url, release: "1" }), upgrade]) {
    const limits = [...text.matchAll(/^[A-Z]+_SECONDS=(.*)$/gm)].map(([, seconds]) =>
      Number(seconds),
    );
    expect(limits.length).toBeGreaterThan(1);
    for (const seconds of limits)
      expect([seconds, Number.isInteger(seconds) && seconds >= 60]).toEqual([seconds, true]);
  }
});

test("a URL stands in curl's configuration as it is, and leads from https to nothing else", () => {
  const lines = curlConfig('https://user:pa"ss@example.org/a\\b?x={1}').split("\n");
  expect(lines[0]).toBe('url = "https://user:pa\\"ss@example.org/a\\\\b?x={1}"');
  expect(lines).toContain("globoff");
  expect(lines).toContain('proto-redir = "=https"');
  expect(curlConfig("http://example.org/")).toContain('proto-redir = "=http,https"');
});

test.each([
  [512_000, undefined, "0.5 MB"],
  [4_395_176, 4_395_176, "4.4 of 4.4 MB"],
  [42_000_000, 310_000_000, "42 of 310 MB"],
])("%d bytes of %p", (bytes, total, text) => {
  expect(megabytes(bytes, total)).toBe(text);
});

describe("why a script failed", () => {
  const result = (stdout: string, stderr: string): Parameters<typeof reasonOf>[0] => ({
    status: 4,
    stdout,
    stderr,
  });
  test.each([
    [
      "its own word",
      result("now: working\n", "noise\nfailed: no Python\nlater noise\n"),
      "no Python",
    ],
    ["else the last line", result("one\n", "E: no mirror.\n\n"), "E: no mirror"],
    ["else its status", result("now: working\n", ""), "it exited with status 4"],
  ])("%s", (_name, ended, reason) => {
    expect(unmarked(reasonOf(ended))).toBe(reason);
  });
  test("dots without end do not keep it busy", () => {
    expect(unmarked(reasonOf(result("", `${".".repeat(600_000)}x`)))).toStartWith("....");
    expect(unmarked(reasonOf(result("", `no${".".repeat(600_000)}`))).length).toBeLessThanOrEqual(
      500,
    );
  });
});
