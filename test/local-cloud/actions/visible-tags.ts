import type { Tags } from "../endpoint/filters.ts";
import type { Instance } from "../state/instance.ts";

const none: Tags = new Map();

/** Returns the tags of an instance that calls can see: none at first. */
export function visibleTags(instance: Instance): Tags {
  return instance.tagsVisibleAt <= Date.now() ? instance.tags : none;
}
