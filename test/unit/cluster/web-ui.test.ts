import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { expectedWebUrl, findWebUi, hasNoWebUi, webUiOf } from "../../../src/cluster/web-ui.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { type PlatformFacts, platformHead } from "../../../src/platform/folder/platform-file.ts";
import { parseNodeReport } from "../../../src/platform/readiness/node-question.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { leastFacts } from "../../support/platform-facts.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const { signal } = new AbortController();
const runtime = { environment: {}, clock: systemClock, progress: silentProgress };
const web = { host: "192.0.2.1", httpPort: 80, httpsPort: 443 };
const node = (changes: object) =>
  ({ role: "master", index: 0, state: "running", ssh: {}, web, ...changes }) as NodeRecord;

/** For a cluster whose key is on another machine. */
const find = (nodes: readonly NodeRecord[]) =>
  findWebUi({ ...runtime, signal }, exampleCluster(nodes, "oss"));

test.each([
  ["oss", undefined, "http://192.0.2.1/"],
  ["enterprise", undefined, "https://192.0.2.1/"],
  ["enterprise", "http", "http://192.0.2.1/"],
  ["oss", "https", "https://192.0.2.1/"],
  ["none", "http:8080/ui/", "http://192.0.2.1/ui/"],
  ["none", "https:9443/", "https://192.0.2.1/"],
  ["none", "none", undefined],
  ["none", undefined, undefined],
] as const)(
  "the web UI of a cluster of variant %s that was created with %s is expected at %s",
  (variant, webUi, url) => {
    const cluster = {
      ...exampleCluster([node({})], variant),
      ...(webUi !== undefined && { webUi }),
    };
    expect(expectedWebUrl(cluster)).toBe(url);
    expect(hasNoWebUi(cluster)).toBe(url === undefined);
  },
);

const page = { port: 80, path: "/ui/", scheme: "http", certificate: undefined } as const;
const tlsPage = { port: 443, path: "/ui/", scheme: "https", certificate: "/etc/ca.pem" } as const;
const ofFolder = (facts: PlatformFacts): string => `layout=folder\nfacts=${platformHead(facts)}\n`;

test.each([
  ["oss", "", "http://192.0.2.1/", undefined],
  ["enterprise", "", "https://192.0.2.1/", "https://192.0.2.1/ca/cluster-ca.crt"],
  ["none", "", undefined, undefined],
  [
    "oss",
    'layout=dcos\nconfig={"ssl_enabled": true}\n',
    "https://192.0.2.1/",
    "https://192.0.2.1/ca/dcos-ca.crt",
  ],
  ["enterprise", 'layout=dcos\nconfig={"ssl_enabled": false}\n', "http://192.0.2.1/", undefined],
  ["enterprise", "layout=dcos\n", "https://192.0.2.1/", "https://192.0.2.1/ca/dcos-ca.crt"],
  ["none", ofFolder(leastFacts), undefined, undefined],
  ["none", ofFolder({ ...leastFacts, web: page }), "http://192.0.2.1/ui/", undefined],
  [
    "none",
    ofFolder({ ...leastFacts, web: tlsPage }),
    "https://192.0.2.1/ui/",
    "/etc/ca.pem on the masters",
  ],
] as const)(
  "of a cluster of variant %s whose master reports %j, the web UI is at %s",
  (variant, output, url, authority) => {
    const master = node({});
    const report = output === "" ? undefined : parseNodeReport(output);
    const found = webUiOf(exampleCluster([master], variant), master, report);
    expect(found).toEqual(url === undefined ? undefined : { url, authority });
  },
);

test("the first running master with an address is taken, with its own ports", () => {
  const other = { host: "127.0.0.1", httpPort: 8080, httpsPort: 8443 };
  const nodes = [
    node({ role: "agent", web: other }),
    node({ state: "ended" }),
    node({ web: { ...web, host: "" } }),
    node({ index: 2, web: other }),
    node({ index: 4 }),
  ];
  expect(expectedWebUrl(exampleCluster(nodes, "oss"))).toBe("http://127.0.0.1:8080/");
});

// Shows R133.
test("without the cluster's key, there is no web UI that can be trusted", async () => {
  const failure = await failureOf(find([node({})]));
  expect(failure).toMatchObject({ id: "key-missing", facts: { cluster: "example" } });
  expect(failure.hint).toContain("import");
});

// Shows R133.
test("a master whose host key was never pinned has no web UI that can be trusted", async () => {
  await using folder = await scratchFolder();
  const { privateKey, knownHosts } = creationFiles(folder.path);
  await writeFile(privateKey, "");
  const others = createKnownHosts(knownHosts);
  await others.pin("192.0.2.2", 22, Buffer.alloc(51));
  const ssh = { host: "192.0.2.1", port: 22, user: "admin" };
  const cluster = { ...exampleCluster([node({ ssh })], "oss"), directory: folder.path };
  expect(await failureOf(findWebUi({ ...runtime, signal }, cluster))).toMatchObject({
    id: "key-missing",
    facts: { node: "master_0", address: "192.0.2.1" },
  });
});

test("without a running master there is no web UI", async () => {
  const failure = await failureOf(find([node({ role: "agent" }), node({ state: "ended" })]));
  expect(failure).toMatchObject({ id: "node-not-found", facts: { cluster: "example" } });
});
