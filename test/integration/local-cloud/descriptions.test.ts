/** What other clients than the program ask the local cloud, and change in it. */
import { expect, test } from "bun:test";
import {
  CreateTagsCommand,
  DeleteTagsCommand,
  DescribeInstancesCommand,
  DescribeInstanceStatusCommand,
  DescribeNetworkInterfacesCommand,
  DescribeTagsCommand,
  DescribeVolumesCommand,
  type EC2Client,
  RebootInstancesCommand,
  RunInstancesCommand,
  type RunInstancesCommandInput,
  StopInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import {
  codeOf,
  debianImage,
  eventually,
  launchOf,
  startCloud,
} from "../../local-cloud/support/sdk.ts";

async function launch(client: EC2Client, changes: Partial<RunInstancesCommandInput> = {}) {
  const request = launchOf(await debianImage(client), changes);
  const { Instances = [] } = await client.send(new RunInstancesCommand(request));
  return Instances[0]!.InstanceId!;
}

async function reached(client: EC2Client, id: string, state: string) {
  const ask = async () =>
    (await client.send(new DescribeInstancesCommand({}))).Reservations?.flatMap(
      ({ Instances = [] }) => Instances,
    ).find(({ InstanceId }) => InstanceId === id);
  return await eventually(ask, (found) => found?.State?.Name === state);
}

test("only running instances have a status, unless all are asked for", async () => {
  await using opened = await startCloud({ behaviour: { pendingMs: 600_000 } });
  const { client, cloud } = opened;
  const id = await launch(client);
  await reached(client, id, "pending");
  const shown = async (IncludeAllInstances: boolean) =>
    (
      await client.send(new DescribeInstanceStatusCommand({ IncludeAllInstances }))
    ).InstanceStatuses?.map(({ InstanceState, SystemStatus }) => [
      InstanceState?.Name,
      SystemStatus?.Status,
    ]);
  expect(await shown(false)).toEqual([]);
  expect(await shown(true)).toEqual([["pending", "not-applicable"]]);
  expect(cloud.requests.counts()["DescribeInstanceStatus"]).toBe(2);
});

test("tags of instances and volumes can be changed and deleted by key, by value, and all at once", async () => {
  await using opened = await startCloud({});
  const { client, cloud } = opened;
  const tags = [
    { Key: "a", Value: "1" },
    { Key: "b", Value: "2" },
  ];
  const id = await launch(client, {
    TagSpecifications: [{ ResourceType: "volume", Tags: tags }],
  });
  await reached(client, id, "running");
  const volume = cloud.instances()[0]!.volumes[0]!.id;
  await client.send(new CreateTagsCommand({ Resources: [id], Tags: tags }));
  const shown = async (resource: string) =>
    (
      await client.send(
        new DescribeTagsCommand({ Filters: [{ Name: "resource-id", Values: [resource] }] }),
      )
    ).Tags?.map(({ ResourceType, Key, Value }) => `${ResourceType} ${Key}=${Value}`);
  expect(await shown(id)).toEqual(["instance a=1", "instance b=2"]);
  expect(await shown(volume)).toEqual(["volume a=1", "volume b=2"]);
  const remove = async (Resources: string[], Tags?: { Key: string; Value?: string }[]) =>
    client.send(new DeleteTagsCommand({ Resources, Tags }));
  await remove([id, volume], [{ Key: "a", Value: "other" }, { Key: "b" }]);
  expect([await shown(id), await shown(volume)]).toEqual([["instance a=1"], ["volume a=1"]]);
  await remove([id]);
  expect([await shown(id), await shown(volume)]).toEqual([[], ["volume a=1"]]);
  expect(await codeOf(remove(["vol-0123456789abcdef0"]))).toBe("InvalidID");
});

test("a volume that outlives its instance is described as available", async () => {
  await using opened = await startCloud({ behaviour: { shuttingDownMs: 10 } });
  const { client } = opened;
  const id = await launch(client, {
    BlockDeviceMappings: [
      { DeviceName: "/dev/sdf", Ebs: { VolumeSize: 5, DeleteOnTermination: false } },
    ],
  });
  await reached(client, id, "running");
  const shown = async () =>
    (await client.send(new DescribeVolumesCommand({}))).Volumes?.map(
      ({ State, Attachments = [] }) => [State, Attachments[0]?.InstanceId],
    );
  expect(await shown()).toEqual([
    ["in-use", id],
    ["in-use", id],
  ]);
  await client.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
  await reached(client, id, "terminated");
  expect(await shown()).toEqual([["available", undefined]]);
  const unknown = new DescribeVolumesCommand({ VolumeIds: ["vol-0123456789abcdef0"] });
  expect(await codeOf(client.send(unknown))).toBe("InvalidVolume.NotFound");
});

test("a stopped instance keeps its volumes and its interface, but no public address", async () => {
  await using opened = await startCloud({ behaviour: { shuttingDownMs: 10 } });
  const { client } = opened;
  const id = await launch(client, { InstanceInitiatedShutdownBehavior: "terminate" });
  await reached(client, id, "running");
  await client.send(new RebootInstancesCommand({ InstanceIds: [id] }));
  await client.send(new StopInstancesCommand({ InstanceIds: [id] }));
  const stopped = await reached(client, id, "stopped");
  expect([stopped?.PublicIpAddress, stopped?.StateReason?.Code]).toEqual([
    undefined,
    "Client.UserInitiatedShutdown",
  ]);
  const { NetworkInterfaces = [] } = await client.send(new DescribeNetworkInterfacesCommand({}));
  expect(NetworkInterfaces.map(({ Attachment, Association }) => [Attachment, Association])).toEqual(
    [[expect.objectContaining({ InstanceId: id }), undefined]],
  );
  const reboot = new RebootInstancesCommand({ InstanceIds: [id] });
  expect(await codeOf(client.send(reboot))).toBe("IncorrectInstanceState");
});
