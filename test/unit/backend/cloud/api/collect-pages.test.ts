import { expect, test } from "bun:test";
import { type CloudApi, collectPages } from "../../../../../src/backend/cloud/api/api.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { failureOf } from "../../../../support/failure-of.ts";

/** Collects this many pages, each with its number. The last one has this text in place of a position. */
async function collect(pages: number, last?: string) {
  const positions: (string | undefined)[] = [];
  const call = async (_action: string, { NextToken }: { readonly NextToken?: string }) => {
    positions.push(NextToken);
    const page = positions.length;
    return {
      Images: page === 2 ? undefined : [page],
      NextToken: page === pages ? last : `after ${page}`,
    };
  };
  const api = { call } as unknown as CloudApi;
  const items: readonly unknown[] = await collectPages(
    api,
    ["DescribeImages", {}],
    ({ Images }) => Images,
    neverAborted,
  );
  return { items, positions };
}

test.each([undefined, ""])("pages are requested until one has the position %j", async (last) => {
  const { items, positions } = await collect(3, last);
  expect([items, positions]).toEqual([
    [1, 3],
    [undefined, "after 1", "after 2"],
  ]);
});

test("an answer with more than a hundred pages has no end", async () => {
  expect((await collect(100)).positions).toHaveLength(100);
  expect(await failureOf(collect(101))).toMatchObject({ id: "cloud-failed" });
});
