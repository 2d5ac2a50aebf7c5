import { Ec2Error } from "./ec2-error.ts";
import type { ParameterDeclaration, Parameters } from "./parameters.ts";

export const filterParameters: ParameterDeclaration = {
  "Filter.N.Name": "text",
  "Filter.N.Value.N": "text",
};

export type Tags = ReadonlyMap<string, string>;

/** The texts that a filter name refers to. A filter matches if one of its values matches one of the texts. */
export type FilterFields<Item> = Readonly<
  Record<string, (item: Item) => readonly (string | undefined)[]>
>;

const maximumFilterValues = 200;

/** Returns the items that match every filter of the request. Rejects unknown filter names, as EC2 does. */
export function applyFilters<Item>(
  items: readonly Item[],
  parameters: Parameters,
  fields: FilterFields<Item>,
  tagsOf: (item: Item) => Tags,
): readonly Item[] {
  const filters = parameters.list("Filter").map((filter) => ({
    lookAt: fieldOf(filter.requiredText("Name"), fields, tagsOf),
    accepts: filter.texts("Value").map(wildcard),
  }));
  if (filters.reduce((sum, filter) => sum + filter.accepts.length, 0) > maximumFilterValues) {
    throw new Ec2Error(
      "FilterLimitExceeded",
      `The maximum number of filter values is ${maximumFilterValues}`,
    );
  }
  return items.filter((item) =>
    filters.every(({ lookAt, accepts }) =>
      lookAt(item).some(
        (text) => text !== undefined && accepts.some((pattern) => pattern.test(text)),
      ),
    ),
  );
}

function fieldOf<Item>(name: string, fields: FilterFields<Item>, tagsOf: (item: Item) => Tags) {
  if (name.startsWith("tag:")) return (item: Item) => [tagsOf(item).get(name.slice(4))];
  if (name === "tag-key") return (item: Item) => [...tagsOf(item).keys()];
  const field = fields[name];
  if (field === undefined)
    throw new Ec2Error("InvalidParameterValue", `The filter '${name}' is invalid`);
  return field;
}

/** `*` matches any text and `?` one character. `\` escapes the next character. */
export function wildcard(pattern: string): RegExp {
  const source = pattern.replaceAll(
    /\\(.)|[.*+?^${}()|[\]\\]/g,
    (found, escaped: string | undefined) => {
      if (escaped !== undefined) return RegExp.escape(escaped);
      if (found === "*") return ".*";
      return found === "?" ? "." : RegExp.escape(found);
    },
  );
  return new RegExp(`^${source}$`, "s");
}
