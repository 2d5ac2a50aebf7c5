import { optionName } from "../../../../src/references.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { anyCounts, chooseCounts } from "../../../../src/cluster/create/choose-counts.ts";
import { leastFacts } from "../../../support/platform-facts.ts";

const nobody = { master: undefined, agent: undefined, public_agent: undefined };
const limited = {
  ...leastFacts,
  nodes: { master: { default: 3, min: 3, max: 5 }, agent: { min: 2 }, public_agent: { max: 0 } },
};

test("a platform's own defaults and limits count, and one node of each role otherwise", () => {
  expect(chooseCounts(nobody, undefined)).toEqual({
    value: { master: 1, agent: 1, public_agent: 1 },
  });
  expect(chooseCounts(nobody, leastFacts)).toEqual({
    value: { master: 1, agent: 1, public_agent: 1 },
  });
  expect(chooseCounts(nobody, limited)).toEqual({
    value: { master: 3, agent: 2, public_agent: 0 },
  });
  const two = { ...limited, nodes: { ...limited.nodes, master: { min: 2 } } };
  expect(chooseCounts(nobody, two)).toMatchObject({ value: { master: 2 } });
  const eleven = { ...limited, nodes: { ...limited.nodes, master: { default: 11 } } };
  expect(chooseCounts(nobody, eleven)).toMatchObject({ value: { master: 11 } });
  expect(chooseCounts({ ...nobody, agent: 998 }, undefined)).toMatchObject({
    value: { agent: 998 },
  });
  expect(chooseCounts({ ...nobody, master: 5, agent: 9 }, limited)).toEqual({
    value: { master: 5, agent: 9, public_agent: 0 },
  });
});

test("a folder has any number of masters; only a release artifact needs an odd one", () => {
  const facts = { ...leastFacts, nodes: { master: {}, agent: {}, public_agent: {} } };
  for (const master of [1, 2, 4, 10, 998])
    expect(chooseCounts({ ...nobody, master }, facts)).toMatchObject({ value: { master } });
  expect(chooseCounts({ ...nobody, master: 2 }, undefined).problems).toEqual([
    `${optionName("masters")}: 2 is not one of 1, 3, 5, 7, 9, as a release artifact requires`,
  ]);
  expect(chooseCounts({ ...nobody, master: 2 }, anyCounts).problems).toBeUndefined();
});

test("every number that the platform doesn't allow is a problem, with both numbers", () => {
  expect(chooseCounts({ master: 7, agent: 1, public_agent: 1 }, limited)).toEqual({
    problems: [
      `${optionName("masters")}: the platform meter allows at most 5, not 7`,
      `${optionName("agents")}: the platform meter needs at least 2, not 1`,
      `${optionName("publicAgents")}: the platform meter allows at most 0, not 1`,
    ],
  });
  expect(chooseCounts({ ...nobody, agent: 1000 }, undefined).problems?.map(unmarked)).toEqual([
    "`masters`, `agents`, `publicAgents`: 1002 nodes are too many (the maximum is 1000)",
  ]);
});
