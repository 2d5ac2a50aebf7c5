/** `cluster-cloud` with a local cloud whose machines are scripted and whose API can break. */
import { join } from "node:path";
import {
  DeleteSecurityGroupCommand,
  EC2Client,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import { accounts } from "../../local-cloud/endpoint/accounts.ts";
import { LocalCloud } from "../../local-cloud/local-cloud.ts";
import type { LoginShell } from "../../local-cloud/machines/exec.ts";
import type { RootShellBreaks } from "../../local-cloud/machines/root-shell.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Exhibit, Struck, Thing } from "../fault.ts";
import { type ApiFault, cloudFault } from "./api-troubles.ts";
import { createWordsWith, newFolder, ProgramWorld } from "./program-world.ts";

/** What the machines answer if nothing goes wrong; the first pattern that matches counts. */
export const usualAnswers: readonly ScriptedAnswer[] = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "artifact\\.sh --version", stdout: '{"variant":"enterprise","version":"1"}\n' },
  { pattern: "artifact\\.sh --genconf", stdout: "cluster_install.sh\n", readsStdin: true },
  { pattern: "resolv\\.conf", stdout: "nameserver 10.0.0.2\n" },
  { pattern: "", readsStdin: true },
];

/** Machines of the cluster. */
const size = 2;

export class CloudWorld extends ProgramWorld {
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly createWords: readonly string[];
  readonly cloud: LocalCloud;
  /** For the artifact's URL. */
  readonly urlSecret = `url-${this.random}`;
  /** The login shell of the machines, looked up for each command. */
  readonly shell: { current: () => LoginShell };
  /** When the machines' root shells end; undefined: they have none. Looked up for each of them. */
  readonly rootShells: { breaks: RootShellBreaks | undefined };
  /** MaxSessions of the machines' SSH servers, for how many sessions it has counted, and how many of them it refused. */
  readonly sessions: { most: number; limited: number; refused: number };

  static async open(this: void): Promise<CloudWorld> {
    const folder = await newFolder();
    const shell: CloudWorld["shell"] = { current: () => ({}) };
    const sessions = { most: Number.POSITIVE_INFINITY, limited: 0, refused: 0 };
    const rootShells: CloudWorld["rootShells"] = { breaks: undefined };
    const cloud = await LocalCloud.start({
      driver: "in-process",
      directory: join(folder, "cloud"),
      loginShell: () => shell.current(),
      rootShellBreaks: () => rootShells.breaks,
      admitsSession: (openSessions) => {
        if (Number.isFinite(sessions.most)) sessions.limited += 1;
        if (openSessions < sessions.most) return true;
        sessions.refused += 1;
        return false;
      },
    });
    cloud.answers.replace(usualAnswers);
    const world = new CloudWorld(folder, cloud, { shell, sessions, rootShells });
    await world.writeInputs();
    return world;
  }

  private constructor(
    folder: string,
    cloud: LocalCloud,
    settings: Pick<CloudWorld, "shell" | "sessions" | "rootShells">,
  ) {
    super(folder, "cluster-cloud");
    this.shell = settings.shell;
    this.sessions = settings.sessions;
    this.rootShells = settings.rootShells;
    this.cloud = cloud;
    this.environment = {
      ...cloud.environment,
      ...this.ownEnvironment(),
      AWS_EC2_METADATA_DISABLED: "true",
    };
    this.secrets = [accounts.main.secretAccessKey, this.license, this.passwordHash, this.urlSecret];
    this.createWords = createWordsWith("--agents 1 --linux-distribution debian-12");
  }

  async answer(...answers: readonly ScriptedAnswer[]): Promise<void> {
    this.cloud.answers.replace([...answers, ...usualAnswers]);
  }

  async begun(): Promise<readonly string[]> {
    return this.cloud.answers.begun;
  }

  async leftovers(keepsCluster: boolean): Promise<readonly Thing[]> {
    const present = this.cloud.instances().filter(({ state }) => state !== "terminated");
    const groups = this.cloud.groups();
    const kept = keepsCluster ? this.#creationToKeep() : undefined;
    const isKept = ({ tags }: { readonly tags: Readonly<Record<string, string>> }): boolean =>
      kept !== undefined && tags[creationTag] === kept;
    return [
      ...present
        .filter((instance) => !isKept(instance))
        .map(({ instanceId: id }): Thing => ({ kind: "machine", id })),
      ...groups
        .filter((group) => !isKept(group))
        .map(({ groupId: id }): Thing => ({ kind: "group", id })),
      ...this.cloud.remainingVolumes().map(({ id }): Thing => ({ kind: "volume", id })),
    ];
  }

  /** Lets requests to the API meet trouble. What it returns says whether all of these faults have struck, and clears them. */
  failApi(...faults: readonly ApiFault[]): Struck {
    return this.cloud.faults.add(...faults.map(cloudFault));
  }

  /** Ends machines as another program of the account may. */
  async terminate(instanceIds: readonly string[]): Promise<void> {
    const client = this.#client();
    if (instanceIds.length > 0)
      await client.send(new TerminateInstancesCommand({ InstanceIds: [...instanceIds] }));
    client.destroy();
  }

  async endCluster(): Promise<void> {
    const present = this.cloud.instances().filter(({ state }) => state !== "terminated");
    await this.terminate(present.map(({ instanceId }) => instanceId));
    while (this.cloud.instances().some(({ state }) => state !== "terminated")) await Bun.sleep(50);
    const client = this.#client();
    for (const { groupId } of this.cloud.groups())
      await client.send(new DeleteSecurityGroupCommand({ GroupId: groupId }));
    client.destroy();
  }

  async exhibits(): Promise<readonly Exhibit[]> {
    const commands = this.cloud.answers.answered.map(({ command }) => ({
      where: "a node's command",
      text: command,
    }));
    const instances = this.cloud.instances().flatMap(({ userData, tags }) => [
      { where: "an instance's user data", text: userData },
      { where: "an instance's tags", text: JSON.stringify(tags) },
    ]);
    return [...commands, ...instances];
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.cloud[Symbol.asyncDispose]();
    await super[Symbol.asyncDispose]();
  }

  #client(): EC2Client {
    const { endpoint, accessKeyId, secretAccessKey, region } = this.cloud;
    return new EC2Client({ region, endpoint, credentials: { accessKeyId, secretAccessKey } });
  }

  /** The newest creation that is whole. */
  #creationToKeep(): string | undefined {
    const running = this.cloud
      .instances()
      .filter(({ state }) => state === "running" || state === "pending");
    const creations = Map.groupBy(running, ({ tags }) => tags[creationTag]);
    return [...creations].findLast(([, machines]) => machines.length === size)?.[0];
  }
}

const creationTag = "cluster-e2e:creation-id";
