import { Ec2Error } from "./ec2-error.ts";
import type { ParameterDeclaration, Parameters } from "./parameters.ts";

export const pagingParameters: ParameterDeclaration = { MaxResults: "integer", NextToken: "text" };

export interface PageLimits {
  readonly minimum: number;
  readonly maximum: number;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextToken: string | undefined;
}

/** Returns one page of `items`, whose order must be stable. The token contains only the position. */
export function pageOf<Item>(
  items: readonly Item[],
  parameters: Parameters,
  limits: PageLimits,
): Page<Item> {
  const size = parameters.integer("MaxResults") ?? limits.maximum;
  if (size < limits.minimum || size > limits.maximum) {
    throw new Ec2Error(
      "InvalidParameterValue",
      `Value ( ${size} ) for parameter maxResults is invalid. Expecting a value between ${limits.minimum} and ${limits.maximum}.`,
    );
  }
  const start = startOf(parameters.text("NextToken"));
  const end = start + size;
  return {
    items: items.slice(start, end),
    nextToken: end < items.length ? tokenFor(end) : undefined,
  };
}

function tokenFor(position: number): string {
  return Buffer.from(`position=${position}`).toString("base64");
}

function startOf(token: string | undefined): number {
  if (token === undefined) return 0;
  const match = /^position=(\d+)$/.exec(Buffer.from(token, "base64").toString());
  if (match === null)
    throw new Ec2Error("InvalidParameterValue", "The token for the next page is invalid");
  return Number(match[1]);
}
