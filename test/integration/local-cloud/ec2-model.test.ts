/** AWS's own model of EC2, which judges every request and every answer of the local cloud in all tests. */
import { expect, test } from "bun:test";
import { DescribeInstancesCommand, DescribeRegionsCommand } from "@aws-sdk/client-ec2";
import { actions } from "../../local-cloud/actions/actions.ts";
import { Ec2Model, ec2Model, modelContradicted } from "../../local-cloud/endpoint/ec2-model.ts";
import { codeOf, failureOf, startCloud } from "../../local-cloud/support/sdk.ts";

const model = () => {
  const found = ec2Model();
  if (found === undefined) throw new Error("the package aws-sdk isn't installed");
  return found;
};

test("every action and parameter of the local cloud exists in AWS's model", () => {
  const values = { text: "x", integer: "1", boolean: "true" };
  const problems = [...actions.values()].flatMap(({ name, parameters }) =>
    Object.entries(parameters).flatMap(([parameter, kind]) => {
      const first = parameter.replaceAll(/(?<=\.)N(?=\.|$)/g, "1");
      return model().requestProblems(name, new Map([[first, values[kind]]]));
    }),
  );
  expect(problems.filter((problem) => !problem.endsWith("is missing"))).toEqual([]);
});

test.each([
  ["DescribeNothing", {}, ["there is no operation DescribeNothing"]],
  ["DescribeInstances", { "Filter.1.Name": "a", "Filter.1.Value.1": "b", MaxResults: "5" }, []],
  [
    "DescribeInstances",
    { "Filter.1.Nome": "a" },
    ["DescribeInstances.Filter.1.Nome: there is no such parameter"],
  ],
  [
    "DescribeInstances",
    { "Filter.x.Name": "a" },
    ["DescribeInstances.Filter.x: it is a list, and that is no position"],
  ],
  [
    "DescribeInstances",
    { MaxResults: "many" },
    ['DescribeInstances.MaxResults: "many" is no integer'],
  ],
  ["DescribeInstances", { Filter: "a" }, ["DescribeInstances.Filter: it is a list, not a value"]],
  [
    "DescribeInstances",
    { "MaxResults.1": "5" },
    ['DescribeInstances.MaxResults: {"1":"5"} is no integer'],
  ],
  [
    "RunInstances",
    { MinCount: "1", Placement: "here" },
    [
      "RunInstances.Placement: it is a structure, not a value",
      "RunInstances: the parameter MaxCount is missing",
    ],
  ],
] as const)("the request %s %j is judged", (action, fields, problems) => {
  expect(model().requestProblems(action, new Map(Object.entries(fields)))).toEqual([...problems]);
});

test.each([
  [{ reservationSet: [{ instancesSet: [{ instanceId: "i-1", amiLaunchIndex: 0 }] }] }, []],
  [
    { reservationSet: [{ instancesSet: [{ id: "i-1" }] }] },
    ["DescribeInstancesResponse.reservationSet.instancesSet.id: there is no such field"],
  ],
  [
    { reservationSet: [{ instancesSet: [{ amiLaunchIndex: "first" }] }] },
    ['DescribeInstancesResponse.reservationSet.instancesSet.amiLaunchIndex: "first" is no integer'],
  ],
  [
    { reservationSet: [{ instancesSet: [{ launchTime: "today" }] }] },
    ['DescribeInstancesResponse.reservationSet.instancesSet.launchTime: "today" is no timestamp'],
  ],
  [{ reservationSet: "none" }, ["DescribeInstancesResponse.reservationSet: it is a list"]],
  [
    { reservationSet: [{ instancesSet: [{ placement: "here" }] }] },
    ["DescribeInstancesResponse.reservationSet.instancesSet.placement: it is a structure"],
  ],
  [{ nextToken: 5 }, ["DescribeInstancesResponse.nextToken: 5 is no string"]],
])("the answer %j is judged", (answer, problems) => {
  expect(model().answerProblems("DescribeInstances", answer)).toEqual(problems);
});

test("an action without a result in the model answers whether it has succeeded, and nothing else", () => {
  expect(model().answerProblems("CreateTags", { return: true })).toEqual([]);
  expect(model().answerProblems("CreateTags", { tagSet: [] })).toEqual([
    "CreateTagsResponse.tagSet: there is no such field",
  ]);
});

test("a violation fails the request, and whatever disposes of the cloud", async () => {
  const other = new Ec2Model({
    operations: { DescribeRegions: { output: { type: "structure" } } },
    shapes: {},
  });
  const { cloud, client } = await startCloud({ model: () => other });
  expect(await codeOf(client.send(new DescribeInstancesCommand({})))).toBe("ModelViolation");
  expect(await failureOf(client.send(new DescribeRegionsCommand({})))).toContain(
    "DescribeRegionsResponse.regionInfo: there is no such field",
  );
  expect(await failureOf(cloud[Symbol.asyncDispose]())).toBe(
    `${modelContradicted}:\nthere is no operation DescribeInstances\nDescribeRegionsResponse.regionInfo: there is no such field`,
  );
});
