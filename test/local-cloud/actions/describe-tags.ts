import { applyFilters, filterParameters, type Tags } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { Action, ActionRequest } from "./action.ts";
import { visibleInstances } from "./describe-instances.ts";
import { visibleTags } from "./visible-tags.ts";
import { volumesOf } from "./volumes.ts";

interface TagItem {
  readonly resourceId: string;
  readonly resourceType: string;
  readonly key: string;
  readonly value: string;
}

export const describeTags: Action = {
  name: "DescribeTags",
  parameters: { ...filterParameters, ...pagingParameters, DryRun: "boolean" },
  required: [],
  run: (request) => {
    const { parameters, passDryRun } = request;
    const filtered = applyFilters(
      allTags(request),
      parameters,
      {
        key: ({ key }) => [key],
        value: ({ value }) => [value],
        "resource-id": ({ resourceId }) => [resourceId],
        "resource-type": ({ resourceType }) => [resourceType],
      },
      ({ key, value }) => new Map([[key, value]]),
    );
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 1000 });
    passDryRun();
    return { tagSet: page.items.map((item) => ({ ...item })), nextToken: page.nextToken };
  },
};

function allTags(request: ActionRequest): readonly TagItem[] {
  const { region } = request;
  return [
    ...visibleInstances(request).flatMap((instance) =>
      itemsOf("instance", instance.id, visibleTags(instance)),
    ),
    ...volumesOf(request).flatMap(({ volume, instance }) =>
      itemsOf("volume", volume.id, instance.volumeTags.get(volume.id) ?? new Map()),
    ),
    ...[...region.groups.values()].flatMap(({ id, tags }) => itemsOf("security-group", id, tags)),
  ];
}

const itemsOf = (resourceType: string, resourceId: string, tags: Tags): readonly TagItem[] =>
  [...tags].map(([key, value]) => ({ resourceId, resourceType, key, value }));
