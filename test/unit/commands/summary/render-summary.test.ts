import { expect, test } from "bun:test";
import type { ClusterView } from "../../../../src/commands/cluster-view.ts";
import { renderCluster, renderFailure } from "../../../../src/commands/summary/render-summary.ts";

const view: ClusterView = {
  id: "nightly",
  backend: "cloud",
  region: "us-west-2",
  variant: "oss",
  distribution: "debian-12",
  state: "running",
  expiresAt: "2026-11-22T09:00:00.000Z",
  secondsLeft: 7000,
  maximumCostDollars: 0.72,
  counts: { masters: 1, agents: 2, publicAgents: 0 },
};

test("a cluster is a table", () => {
  expect(renderCluster("Cluster ready", view, [["Waited", "40 s"]])).toBe(
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
  const { expiresAt: _end, secondsLeft: _left, maximumCostDollars: _cost, region: _region, ...local } = view;
  const text = renderCluster("Cluster ready", { ...local, backend: "container" }, []);
  expect(text).toContain("| Place | `container` |");
  expect(text).not.toMatch(/Ends|Cost/);
});

test("a cluster of a platform without variants has none to show", () => {
  const text = renderCluster("Cluster ready", { ...view, variant: "none" }, []);
  expect(text).toContain("| Distribution | `debian-12` |");
  expect(text).not.toContain("Variant");
});

test("values from outside stay in their cells", () => {
  const text = renderCluster("Cluster ready", { ...view, distribution: "a`b|c\n| d | <img src=x>" }, []);
  expect(text).toContain("| Variant | `oss, a'b\\|c \\| d \\| <img src=x>` |\n| Nodes |");
});

test("each line of a failure is in the code block", () => {
  expect(renderFailure("No", "a\n\n```\rb\r\n# c", undefined)).toBe("### No\n\n    a\n    \n    ```\n    b\n    # c\n");
});
