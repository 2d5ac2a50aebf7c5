import { expect, test } from "bun:test";
import { findWebUi } from "../../../src/cluster/web-ui.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";

const { signal } = new AbortController();
const runtime = { environment: {}, clock: systemClock, progress: silentProgress };
const web = { host: "192.0.2.1", httpPort: 80, httpsPort: 443 };
const node = (changes: object) => ({ role: "master", index: 0, state: "running", web, ...changes }) as NodeRecord;

/** For a cluster whose key is on another machine. */
const find = (nodes: readonly NodeRecord[], changes: Partial<ClusterRecord> = {}) =>
  findWebUi({ ...exampleCluster(nodes, "oss"), ...changes }, runtime, signal);

test.each([
  [{ variant: "oss" }, "http://192.0.2.1/"],
  [{ variant: "enterprise" }, "https://192.0.2.1/"],
  [{ variant: "enterprise", webScheme: "http" }, "http://192.0.2.1/"],
  [{ variant: "oss", webScheme: "https" }, "https://192.0.2.1/"],
] as const)("without the key, the web UI of a cluster %j is at %s", async (changes, url) => {
  const found = await find([node({})], changes);
  expect(found.url).toBe(url);
  expect(found.authorityUrl === undefined).toBe(url.startsWith("http:"));
});

test("the first running master with an address is taken, with its own ports", async () => {
  const other = { host: "127.0.0.1", httpPort: 8080, httpsPort: 8443 };
  const nodes = [
    node({ role: "agent", web: other }),
    node({ state: "ended" }),
    node({ web: { ...web, host: "" } }),
    node({ index: 2, web: other }),
    node({ index: 4 }),
  ];
  expect((await find(nodes)).url).toBe("http://127.0.0.1:8080/");
});

test("without a running master there is no web UI", async () => {
  const failure = await failureOf(find([node({ role: "agent" }), node({ state: "ended" })]));
  expect(failure).toMatchObject({ id: "node-not-found", facts: { cluster: "example" } });
});
