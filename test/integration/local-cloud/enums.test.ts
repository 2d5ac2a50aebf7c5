/** The values of the local cloud's answers, by the declarations of the real SDK. */
import { expect, test } from "bun:test";
import * as ec2 from "@aws-sdk/client-ec2";
import { judgeEnums, readDeclarations } from "../../local-cloud/support/sdk-enums.ts";
import { debianImage, eventually, launchOf, startCloud } from "../../local-cloud/support/sdk.ts";

test("a value that EC2 does not have is found", async () => {
  const declarations = await readDeclarations();
  const answer = {
    Volumes: [{ State: "in-use", VolumeType: "gp9", Attachments: [{ State: "stuck" }] }],
  };
  const { problems, judged } = judgeEnums(answer, "DescribeVolumesResult", declarations);
  expect(problems.map((problem) => problem.split(" is none of ")[0])).toEqual([
    "Volumes.VolumeType: gp9",
    "Volumes.Attachments.State: stuck",
  ]);
  expect(judged).toBe(3);
});

test("every value of every description is one that EC2 has, in each state of an instance", async () => {
  await using opened = await startCloud({ behaviour: { pendingMs: 100, shuttingDownMs: 100 } });
  const { client } = opened;
  const declarations = await readDeclarations();
  const problems: string[] = [];
  const judged: Record<string, number> = {};
  const judge = (action: string, type: string, answer: object): void => {
    const found = judgeEnums(answer, type, declarations);
    problems.push(...found.problems.map((problem) => `${action}: ${problem}`));
    judged[action] = (judged[action] ?? 0) + found.judged;
  };
  const describeAll = async (): Promise<void> => {
    const commands = [
      new ec2.DescribeInstancesCommand({}),
      new ec2.DescribeInstanceStatusCommand({ IncludeAllInstances: true }),
      new ec2.DescribeVolumesCommand({}),
      new ec2.DescribeNetworkInterfacesCommand({}),
      new ec2.DescribeTagsCommand({}),
    ];
    for (const command of commands) {
      const name = command.constructor.name.replace(/Command$/, "");
      judge(name, `${name}Result`, await client.send(command));
    }
  };
  const places = [
    new ec2.DescribeImagesCommand({}),
    new ec2.DescribeSubnetsCommand({}),
    new ec2.DescribeVpcsCommand({}),
    new ec2.DescribeAvailabilityZonesCommand({}),
    new ec2.DescribeInstanceTypesCommand({}),
    new ec2.DescribeInstanceTypeOfferingsCommand({}),
  ];
  for (const command of places) {
    const name = command.constructor.name.replace(/Command$/, "");
    judge(name, `${name}Result`, await client.send(command));
  }
  const tags: ec2.TagSpecification = {
    ResourceType: "instance",
    Tags: [{ Key: "a", Value: "b" }],
  };
  const launch = launchOf(await debianImage(client), { TagSpecifications: [tags] });
  const launched = await client.send(new ec2.RunInstancesCommand({ ...launch, MaxCount: 2 }));
  judge("RunInstances", "Reservation", launched);
  const [one = "", other = ""] = (launched.Instances ?? []).map(
    ({ InstanceId = "" }) => InstanceId,
  );
  const reach = async (id: string, state: string): Promise<void> => {
    const ask = async () => client.send(new ec2.DescribeInstancesCommand({}));
    await eventually(ask, ({ Reservations = [] }) =>
      Reservations.flatMap(({ Instances = [] }) => Instances).some(
        ({ InstanceId, State }) => InstanceId === id && State?.Name === state,
      ),
    );
    await describeAll();
  };
  await reach(one, "running");
  await reach(other, "running");
  const changed = { InstanceIds: [one], InstanceId: one, HttpTokens: "required" } as const;
  const modify = await client.send(new ec2.ModifyInstanceMetadataOptionsCommand(changed));
  judge("ModifyInstanceMetadataOptions", "ModifyInstanceMetadataOptionsResult", modify);
  const stop = await client.send(new ec2.StopInstancesCommand({ InstanceIds: [other] }));
  judge("StopInstances", "StopInstancesResult", stop);
  await reach(other, "stopped");
  const end = await client.send(new ec2.TerminateInstancesCommand({ InstanceIds: [one] }));
  judge("TerminateInstances", "TerminateInstancesResult", end);
  await reach(one, "terminated");
  expect(problems).toEqual([]);
  for (const [action, count] of Object.entries(judged)) expect(count, action).toBeGreaterThan(0);
});
