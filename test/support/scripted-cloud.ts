import type {
  CreateSecurityGroupCommandInput,
  Filter,
  Instance,
  RunInstancesCommandInput,
  SecurityGroup,
} from "@aws-sdk/client-ec2";
import { callFailure } from "../../src/backend/cloud/api/api-errors.ts";
import type { CloudApi } from "../../src/backend/cloud/api/api.ts";
import { groupName, readTags, type TagValues, toTags } from "../../src/backend/cloud/tags.ts";
import type { ClusterError } from "../../src/errors.ts";
import type { Runtime } from "../../src/system/runtime.ts";
import { recordingProgress } from "./recording-progress.ts";

export interface ScriptedInstance {
  readonly id: string;
  readonly tags: TagValues;
  /** Before this moment, the API neither shows it nor lets anybody terminate it. */
  readonly visibleAtMs?: number;
  /** How long it takes to end after it was told to. `Infinity`: it never ends. */
  readonly endingMs?: number;
  /** The token of the request that launched it. */
  readonly token?: string;
  readonly groupId?: string;
  /** Default: the name of its cluster's group. If this and the id are empty, the API describes no group. */
  readonly groupName?: string;
  readonly state?: "running" | "terminated";
  /** How long before the start it was launched. */
  readonly ageMs?: number;
  /** When it ends, because it was told to earlier. */
  readonly endsAtMs?: number;
}

interface Call {
  readonly action: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

/** Returns the failure that the API answers with, instead of carrying out the call. */
type Fault = (call: Call) => Error | undefined;

/** The failure of a request that the API refused with this code. */
export const refusal = (code: string, message = "Said so"): ClusterError =>
  failure(code, 400, message);
/** The failure of a request that found no working API. */
export const outage = (): ClusterError => failure("ServiceUnavailable", 503, "Said so");

function failure(code: string, httpStatusCode: number, message: string): ClusterError {
  const error = Object.assign(new Error(message), { name: code, $metadata: { httpStatusCode } });
  const context = {
    region: "us-west-2",
    credentialSource: "a test",
    renewal: "Renew them.",
    endpoint: undefined,
    proxy: undefined,
  };
  return callFailure(error, { ...context, action: "Any", clockOffSeconds: 0 });
}

/** A cloud in memory, in a time that passes only while somebody sleeps. Unlike the local cloud, it can be late for minutes. */
export function scriptedCloud(
  instances: readonly ScriptedInstance[],
  groups: readonly SecurityGroup[],
  fault: Fault = () => undefined,
) {
  const time = { nowMs: Date.parse("2026-01-01T00:00:00Z") };
  const startMs = time.nowMs;
  const known = [...instances];
  const groupsLeft = new Map(groups.map((group) => [group.GroupId ?? "", group]));
  const endsAtMs = new Map(
    instances.flatMap(({ id, endsAtMs: atMs }) => (atMs === undefined ? [] : [[id, atMs]])),
  );
  const calls: Call[] = [];
  const waits: string[] = [];
  const elapsedMs = (): number => time.nowMs - startMs;
  const { progress, told, steps } = recordingProgress();
  const isEnded = ({ id, state }: ScriptedInstance): boolean =>
    state === "terminated" || elapsedMs() >= (endsAtMs.get(id) ?? Infinity);
  const isVisible = ({ visibleAtMs = 0 }: ScriptedInstance): boolean => elapsedMs() >= visibleAtMs;
  const describe = (each: ScriptedInstance): Instance => ({
    InstanceId: each.id,
    State: {
      Name: isEnded(each)
        ? "terminated"
        : endsAtMs.has(each.id)
          ? "shutting-down"
          : (each.state ?? "running"),
    },
    LaunchTime: new Date(startMs - (each.ageMs ?? 0)),
    SecurityGroups:
      each.groupId === "" && each.groupName === ""
        ? []
        : [
            {
              GroupId: each.groupId ?? "",
              GroupName: each.groupName ?? groupName(each.tags.clusterId ?? ""),
            },
          ],
    Tags: toTags("x", each.tags, []),
    ...(each.token !== undefined && { ClientToken: each.token }),
  });
  const answers: Readonly<Record<string, (input: never) => unknown>> = {
    DescribeInstances: ({ Filters: [filter] }: { readonly Filters: readonly Filter[] }) => ({
      Reservations: [
        {
          Instances: known
            .filter(isVisible)
            .map(describe)
            .filter((instance) => matches(filter!, instance)),
        },
      ],
    }),
    DescribeSecurityGroups: ({ Filters: [filter] }: { readonly Filters: readonly Filter[] }) => ({
      SecurityGroups: [...groupsLeft.values()].filter((group) => matches(filter!, group)),
    }),
    TerminateInstances: ({ InstanceIds }: { readonly InstanceIds: readonly string[] }) => {
      const meant = InstanceIds.map((id) =>
        known.find((each) => each.id === id && isVisible(each)),
      );
      if (meant.includes(undefined)) throw refusal("InvalidInstanceID.NotFound");
      for (const each of meant)
        endsAtMs.set(each!.id, endsAtMs.get(each!.id) ?? elapsedMs() + (each!.endingMs ?? 0));
      return { TerminatingInstances: InstanceIds.map((InstanceId) => ({ InstanceId })) };
    },
    DeleteSecurityGroup: ({ GroupId }: { readonly GroupId: string }) => {
      if (!groupsLeft.has(GroupId)) throw refusal("InvalidGroup.NotFound");
      if (known.some((each) => each.groupId === GroupId && !isEnded(each)))
        throw refusal("DependencyViolation");
      groupsLeft.delete(GroupId);
      return { Return: true };
    },
    CreateSecurityGroup: ({
      GroupName,
      TagSpecifications = [],
    }: CreateSecurityGroupCommandInput) => {
      if ([...groupsLeft.values()].some((group) => group.GroupName === GroupName))
        throw refusal("InvalidGroup.Duplicate");
      const GroupId = `sg-${String(groupsLeft.size + 1).padStart(8, "0")}`;
      groupsLeft.set(GroupId, { GroupId, GroupName, Tags: TagSpecifications[0]?.Tags });
      return { GroupId };
    },
    RunInstances: ({
      ClientToken = "",
      MinCount = 1,
      TagSpecifications = [],
    }: RunInstancesCommandInput) => {
      const tags = readTags(TagSpecifications[0]?.Tags);
      if (!known.some(({ token }) => token === ClientToken))
        for (let count = 0; count < MinCount; count += 1)
          known.push({
            id: newId(known.length),
            tags: { ...tags, indexBase: String(count) },
            token: ClientToken,
          });
      return { Instances: known.filter(({ token }) => token === ClientToken).map(describe) };
    },
  };
  const call = async (
    action: string,
    input: Call["input"],
    signal: AbortSignal,
  ): Promise<unknown> => {
    signal.throwIfAborted();
    const made = { action, input, atMs: elapsedMs() };
    calls.push(made);
    const failed = fault(made);
    if (failed !== undefined) throw failed;
    return answers[action]?.(input as never) ?? {};
  };
  const api: CloudApi = {
    region: "us-west-2",
    credentialSource: "a test",
    now: () => time.nowMs,
    call: call as CloudApi["call"],
  };
  const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    time.nowMs += ms;
  };
  const waiting = (text: string): void => void waits.push(text);
  const runtime: Runtime = {
    environment: {},
    clock: { now: () => time.nowMs, sleep },
    progress: {
      ...progress,
      waiting,
      detail: (level, text) => void told.push(`${level}: ${text}`),
    },
  };
  return {
    api,
    runtime,
    /** Lines for users; details with their level. */
    told,
    /** How each step ended; see recordingProgress. */
    steps,
    waits,
    /** In order, each with the time since the start. */
    calls,
    elapsedMs,
    /** The ids of the machines that run or still end. */
    machinesLeft: (): readonly string[] =>
      known.filter((each) => !isEnded(each)).map(({ id }) => id),
    groupsLeft: (): readonly string[] => [...groupsLeft.keys()],
    /** The actions called, in order, without those that only read. */
    changes: (): readonly string[] =>
      calls.map(({ action }) => action).filter((action) => !action.startsWith("Describe")),
  };
}

const newId = (number: number): string => `i-${String(number).padStart(17, "0")}`;

/** Whether the API's one filter selects the instance or the group. */
function matches({ Name = "", Values = [] }: Filter, thing: Instance | SecurityGroup): boolean {
  if (Name === "instance-id")
    return "InstanceId" in thing && Values.includes(thing.InstanceId ?? "");
  if (Name === "client-token")
    return "ClientToken" in thing && Values.includes(thing.ClientToken ?? "");
  if (Name === "group-name") return "GroupName" in thing && Values.includes(thing.GroupName ?? "");
  const { Tags = [] } = thing;
  if (Name === "tag-key") return Tags.some(({ Key = "" }) => Values.includes(Key));
  return Tags.some(({ Key, Value = "" }) => Name === `tag:${Key}` && Values.includes(Value));
}
