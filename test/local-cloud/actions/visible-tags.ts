import type { Tags } from "../endpoint/filters.ts";
import type { Instance } from "../state/instance.ts";

const none: Tags = new Map();

/** An instance's tags as calls see them: none at first. */
export function visibleTags(instance: Instance): Tags {
  return instance.tagsVisibleAt <= Date.now() ? instance.tags : none;
}
