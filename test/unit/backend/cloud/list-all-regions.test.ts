import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../src/backend/cloud/api/api.ts";
import { listAllRegions } from "../../../../src/backend/cloud/records.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { outside } from "../../../../src/outside-text.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Lists two regions, of which one fails. */
async function list(fail: () => never, signal: AbortSignal) {
  const open = (region: string): CloudApi => {
    const call = async (action: string): Promise<object> => {
      if (action === "DescribeRegions")
        return Promise.resolve({
          Regions: [{ RegionName: "us-west-2" }, { RegionName: "eu-west-1" }],
        });
      return region === "eu-west-1" ? fail() : Promise.resolve({});
    };
    return { region, call } as unknown as CloudApi;
  };
  return listAllRegions(
    open,
    "us-west-2",
    async (region) => [{ id: region } as ClusterRecord],
    signal,
  );
}

test("a region that doesn't answer is named, and the others are listed", async () => {
  const fail = (): never => {
    throw new Error("It did not answer.");
  };
  expect(await list(fail, neverAborted)).toMatchObject({
    clusters: [{ id: "us-west-2" }],
    unreachable: [{ scope: "eu-west-1", reason: outside("It did not answer.") }],
  });
});

test("an interrupt is not reported as a region that doesn't answer", async () => {
  const interrupted = new AbortController();
  const fail = (): never => {
    interrupted.abort(new Error("interrupted"));
    throw new Error("It did not answer.");
  };
  expect((await failureOf(list(fail, interrupted.signal))).message).toBe("interrupted");
});
