/** `cluster-container` with a scripted engine that can misbehave at each call. */
import { LoopbackBlock } from "../../local-cloud/machines/loopback-block.ts";
import {
  type ScriptedAnswer,
  ScriptedAnswers,
} from "../../local-cloud/machines/scripted-answers.ts";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import type { Exhibit, Struck, Thing } from "../fault.ts";
import { usualAnswers } from "./cloud-world.ts";
import { createWordsWith, newFolder, ProgramWorld } from "./program-world.ts";
import { type EngineAnswer, refusalBy, type ScriptedEngineName } from "./engine-answers.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

export interface EngineFault {
  /** The beginning of the words, such as `network create`. */
  readonly call: string;
  /** How many calls it strikes; without it, all. */
  readonly times?: number;
  /** `before`: instead of the command; `after`: the command is carried out first. */
  readonly when: "before" | "after";
  /** What the daemon says, or all of the answer. */
  readonly answer: string | EngineAnswer;
}

const size = 2;

export class ContainerWorld extends ProgramWorld {
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly createWords: readonly string[];
  readonly engine: ScriptedEngine;
  readonly answers = new ScriptedAnswers();
  readonly #block: LoopbackBlock;
  readonly #server: Bun.Server<undefined>;
  #planned: { fault: EngineFault; timesLeft: number; hasStruck: boolean }[] = [];

  /** The engine's program, and the value of --engine. */
  readonly engineName: ScriptedEngineName;

  static async open(this: void): Promise<ContainerWorld> {
    return ContainerWorld.#openWith("docker");
  }

  static async openPodman(this: void): Promise<ContainerWorld> {
    return ContainerWorld.#openWith("podman");
  }

  static async #openWith(engineName: ScriptedEngineName): Promise<ContainerWorld> {
    const world = new ContainerWorld(await newFolder(), engineName, await LoopbackBlock.claim());
    await world.writeInputs();
    await world.writeProgram(engineName, "docker-program.ts", [
      `http://127.0.0.1:${world.#server.port}`,
    ]);
    return world;
  }

  private constructor(folder: string, engineName: ScriptedEngineName, block: LoopbackBlock) {
    super(folder, "cluster-container");
    this.engineName = engineName;
    this.#block = block;
    this.answers.replace(usualAnswers);
    this.engine = new ScriptedEngine(engineName, block, this.answers);
    this.#server = serveOnLoopback(async (request) => this.#answer(request));
    this.environment = this.ownEnvironment();
    this.secrets = [this.license, this.passwordHash];
    this.createWords = createWordsWith(
      `--engine ${engineName} --agents 1 --node-image localhost/node`,
    );
  }

  async answer(...answers: readonly ScriptedAnswer[]): Promise<void> {
    this.answers.replace([...answers, ...usualAnswers]);
  }

  async begun(): Promise<readonly string[]> {
    return this.answers.begun;
  }

  strike(...faults: readonly EngineFault[]): Struck {
    const added = faults.map((fault) => ({
      fault,
      timesLeft: fault.times ?? Number.POSITIVE_INFINITY,
      hasStruck: false,
    }));
    this.#planned.push(...added);
    return {
      hasStruck: () => added.every(({ hasStruck }) => hasStruck),
      [Symbol.asyncDispose]: async () => {
        this.#planned = [];
      },
    };
  }

  async leftovers(keepsCluster: boolean): Promise<readonly Thing[]> {
    const { containers, networks, images, volumes } = this.engine;
    const creations = Map.groupBy(
      containers.filter(({ status }) => status === "running"),
      ({ labels }) => labels[creationLabel],
    );
    const kept = keepsCluster
      ? [...creations].findLast(([, nodes]) => nodes.length === size)?.[0]
      : undefined;
    const isLeft = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): boolean =>
      kept === undefined || labels[creationLabel] !== kept;
    return [
      ...containers
        .filter(isLeft)
        .map(({ id }): Thing => ({ kind: "machine", id: id.slice(0, 12) })),
      ...networks.filter(isLeft).map(({ id }): Thing => ({ kind: "network", id: id.slice(0, 12) })),
      ...images.filter(isLeft).map(({ name }): Thing => ({ kind: "image", id: name })),
      ...[...volumes]
        .filter(([, labels]) => isLeft({ labels }))
        .map(([name]): Thing => ({ kind: "volume", id: name })),
    ];
  }

  async endCluster(): Promise<void> {
    const destroyed = await this.run([
      "destroy",
      "--yes",
      "--engine",
      this.engineName,
      "-c",
      "faulty",
    ]);
    if (destroyed.status !== 0)
      throw new Error(`the cluster could not be destroyed:\n${destroyed.stderr}`);
  }

  async exhibits(): Promise<readonly Exhibit[]> {
    return this.answers.answered.map(({ command }) => ({
      where: "a node's command",
      text: command,
    }));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
    await this.engine[Symbol.asyncDispose]();
    await this.#block[Symbol.asyncDispose]();
    await super[Symbol.asyncDispose]();
  }

  async #answer(request: Request): Promise<Response> {
    const { words, stdin } = (await request.json()) as {
      readonly words: readonly string[];
      readonly stdin: string;
    };
    const run = async (): Promise<EngineAnswer> =>
      this.engine.run(words, Buffer.from(stdin, "base64"));
    const found = this.#planned.find(
      ({ fault, timesLeft }) => timesLeft > 0 && `${words.join(" ")} `.startsWith(`${fault.call} `),
    );
    if (found === undefined) return Response.json(await run());
    found.timesLeft -= 1;
    found.hasStruck = true;
    const { when, answer } = found.fault;
    if (when === "after") await run();
    return Response.json(typeof answer === "string" ? refusalBy(this.engineName)(answer) : answer);
  }
}

const creationLabel = "cluster-e2e.creation-id";
