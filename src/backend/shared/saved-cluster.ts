import {
  parseClusterId,
  parseCountsObject,
  parseDistribution,
  parseMoment,
  parsePlatform,
  parseSnapshotName,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";

export const mostSavedNodes = 1000;

export const parseTime = read.refined(parseMoment, (moment) => moment.toISOString());

/** The facts about a saved cluster that don't depend on the kind of its machines. */
export const savedClusterFields = {
  clusterId: parseClusterId,
  /** Among the first facts of each file: the command `once` reads it there, even if the rest is damaged. */
  snapshot: parseSnapshotName,
  createdAt: parseTime,
  variant: parseVariant,
  distribution: parseDistribution,
  counts: parseCountsObject,
  webUi: read.optional(parseWebUi),
  platform: read.optional(parsePlatform),
};

export type SavedCluster = read.FieldValues<typeof savedClusterFields>;
