import { expect, test } from "bun:test";
import { renderCluster, renderFailure } from "../../../../src/commands/summary/render-summary.ts";
import type { ClusterRecord, NodeRecord, Role } from "../../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../../support/install-example.ts";

const nowMs = Date.parse("2026-11-22T07:03:20Z");
const node = (role: Role) => ({ role, state: "running" }) as NodeRecord;
const cluster: ClusterRecord = {
  ...exampleCluster([node("master"), node("agent"), node("agent")], "oss"),
  id: "nightly",
  backend: "cloud",
  region: "us-west-2",
  expiresAt: new Date(nowMs + 7_000_000),
  maximumCost: 0.72,
};

const render = (given: Partial<ClusterRecord> = {}) =>
  renderCluster(
    { title: "Cluster ready", cluster: { ...cluster, ...given }, more: [["Waited", "40 s"]] },
    nowMs,
  );

test("a cluster is a table", () => {
  expect(render()).toBe(
    [
      "### Cluster ready",
      "",
      "| Cluster | `nightly` |",
      "| --- | --- |",
      "| Place | `cloud, us-west-2` |",
      "| Variant | `oss, debian-12` |",
      "| Nodes | `1 master, 2 agents, 0 public agents` |",
      "| Ends | `09:00 UTC (in 1 h 56 min)` |",
      "| Cost | `at most $0.72` |",
      "| Waited | `40 s` |",
      "",
    ].join("\n"),
  );
});

test("a cluster without a lifetime has no end and no cost", () => {
  const { maximumCost: _cost, ...local } = {
    ...cluster,
    backend: "container",
    region: undefined,
  } as const;
  const free = { ...local, expiresAt: undefined };
  const text = renderCluster({ title: "Cluster ready", cluster: free, more: [] }, nowMs);
  expect(text).toContain("| Place | `container` |");
  expect(text).not.toMatch(/Ends|Cost/);
});

test("a cluster of a platform without variants has none to show", () => {
  const text = render({ variant: "none" });
  expect(text).toContain("| Distribution | `debian-12` |");
  expect(text).not.toContain("Variant");
});

test("values from outside stay in their cells", () => {
  const text = render({ distribution: "a`b|c\n| d | <img src=x>" });
  expect(text).toContain("| Variant | `oss, a'b\\|c \\| d \\| <img src=x>` |\n| Nodes |");
});

test("each line of a failure is in the code block", () => {
  expect(renderFailure("No", "a\n\n```\rb\r\n# c", undefined)).toBe(
    "### No\n\n    a\n    \n    ```\n    b\n    # c\n",
  );
});
