import { expect, test } from "bun:test";
import { collectPages } from "../../../../../src/backend/cloud/api/api.ts";
import { failureOf } from "../../../../support/failure-of.ts";

/** Collects this many pages, each with its number. The last one has this text in place of a position. */
async function collect(pages: number, last?: string) {
  const positions: (string | undefined)[] = [];
  const items = await collectPages(async ({ NextToken }) => {
    positions.push(NextToken);
    const page = positions.length;
    return { items: page === 2 ? undefined : [page], next: page === pages ? last : `after ${page}` };
  });
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
