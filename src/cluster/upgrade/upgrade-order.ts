import { type NodeRecord, nodeReference, roles } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import type { NodeVersion } from "../../platform/upgrade/node-version.ts";

export interface SurveyedNode {
  readonly node: NodeRecord;
  readonly found: NodeVersion;
}

/** A node whose check must pass, and whether its script runs before that. */
export interface NodeWork extends SurveyedNode {
  readonly runsScript: boolean;
  /** The version that its script upgrades from. */
  readonly from: string;
}

/** Whether an earlier upgrade to this version changed the node; if so, the node's check shows whether it is done. */
export const wasUpgradedTo = ({ found }: SurveyedNode, version: string): boolean =>
  found.version === version && found.upgrade.to === version;

/**
 * Returns the remaining work: nodes with another version, and nodes that an earlier run upgraded
 * but whose check doesn't pass; their script runs again if it can. A node that was installed with
 * the version is left alone.
 */
export function remainingWork(
  surveyed: readonly SurveyedNode[],
  {
    version,
    unready,
    isRepeatable,
  }: {
    readonly version: string;
    readonly unready: ReadonlySet<string>;
    readonly isRepeatable: boolean;
  },
): readonly NodeWork[] {
  return surveyed.flatMap((each): readonly NodeWork[] => {
    const { version: has, upgrade } = each.found;
    if (has !== version) return [{ ...each, runsScript: true, from: has }];
    return unready.has(each.node.id)
      ? [{ ...each, runsScript: isRepeatable, from: upgrade.from }]
      : [];
  });
}

/** Masters one after the other, then agents, then public agents. Each round says how many are upgraded at once. */
export const roundsOf = (work: readonly NodeWork[], parallel: number) =>
  roles
    .map((role) => ({
      nodes: work
        .filter(({ node }) => node.role === role)
        .toSorted((one, other) => one.node.index - other.node.index),
      atOnce: role === "master" ? 1 : parallel,
    }))
    .filter(({ nodes }) => nodes.length > 0);

export interface UpgradeLedger {
  readonly seen: (node: NodeRecord, version: string) => void;
  readonly begin: (node: NodeRecord) => void;
  readonly end: (node: NodeRecord) => void;
  /** `Version 2.0: master_0. Version 1.0: agent_0, agent_1.` */
  readonly versionsText: () => string;
  readonly versions: () => Readonly<Record<string, string>>;
  /** The nodes whose upgrade has begun and not ended. */
  readonly begun: () => readonly string[];
}

export function openLedger(surveyed: readonly SurveyedNode[]): UpgradeLedger {
  const versions = new Map(surveyed.map(({ node, found }) => [nodeReference(node), found.version]));
  const begun = new Set<string>();
  return {
    seen: (node, version) => {
      begun.delete(nodeReference(node));
      versions.set(nodeReference(node), version);
    },
    begin: (node) => void begun.add(nodeReference(node)),
    end: (node) => void begun.delete(nodeReference(node)),
    versionsText: () =>
      [...Map.groupBy(versions, ([, version]) => version)]
        .map(
          ([version, nodes]) =>
            `Version ${outside(version) || "unknown"}: ${nodes.map(([name]) => name).join(", ")}.`,
        )
        .join(" "),
    versions: () =>
      Object.fromEntries([...versions].map(([node, version]) => [node, outside(version)])),
    begun: () => [...begun],
  };
}
