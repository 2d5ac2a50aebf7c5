import type { Counts, Variant, WebUi } from "../../model/cluster-record.ts";
import {
  parseClusterId,
  parseCountsObject,
  parseDistribution,
  parseMoment,
  parseSnapshotName,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";

/** The facts about a saved cluster that don't depend on the kind of its machines. */
export interface SavedCluster {
  readonly clusterId: string;
  /** Among the first facts of each file: the command `once` reads it there, even if the rest is damaged. */
  readonly snapshot: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  readonly webUi?: WebUi | undefined;
}

export const mostSavedNodes = 1000;

export const parseTime = read.refined(parseMoment, (moment) => moment.toISOString());

/** The readers of these fields. */
export const savedClusterFields = {
  clusterId: parseClusterId,
  snapshot: parseSnapshotName,
  createdAt: parseTime,
  variant: parseVariant,
  distribution: parseDistribution,
  counts: parseCountsObject,
  webUi: read.optional(parseWebUi),
};
