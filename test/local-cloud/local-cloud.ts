import { randomBytes } from "node:crypto";
import { serveOnLoopback } from "../support/loopback-server.ts";
import { type Behaviour, BehaviourSetting, usualBehaviour } from "./behaviour.ts";
import { CloudClock } from "./clock.ts";
import { answerControl } from "./control/control-endpoint.ts";
import { type GroupView, groupViews, type InstanceView, instanceView } from "./control/views.ts";
import { accounts } from "./endpoint/accounts.ts";
import { Ec2Endpoint } from "./endpoint/ec2-endpoint.ts";
import { type Ec2Model, ec2Model, modelContradicted } from "./endpoint/ec2-model.ts";
import { Faults } from "./endpoint/faults.ts";
import { RequestLog } from "./endpoint/request-log.ts";
import { ContainerDriver } from "./machines/container-driver.ts";
import { InProcessDriver } from "./machines/in-process-driver.ts";
import type { SessionStart } from "./machines/in-process-machine.ts";
import type { ExecHandler, LoginShell } from "./machines/exec.ts";
import { Lifecycle } from "./machines/lifecycle.ts";
import { LoopbackBlock } from "./machines/loopback-block.ts";
import type { MachineDriver } from "./machines/machine-driver.ts";
import type { RootShellBreaks } from "./machines/root-shell.ts";
import { ScriptedAnswers } from "./machines/scripted-answers.ts";
import type { Volume } from "./state/instance.ts";
import { PrivateAddresses } from "./state/private-addresses.ts";

export interface LocalCloudOptions {
  readonly driver: "container" | "in-process";
  /** The container image of machines with Debian 12; default: the usual one. */
  readonly debianImage?: string | undefined;
  /**
   * An existing folder for this cloud alone. Machines are labelled with it, and remains of a cloud of this folder that
   * was killed are removed first.
   */
  readonly directory: string;
  /** 0: any free port. */
  readonly port?: number;
  /** The SSH port of in-process machines. Default: 22, if this process may use it. */
  readonly sshPort?: number;
  /** For in-process machines: replaces the table of scripted answers. */
  readonly onExec?: ExecHandler;
  /**
   * For in-process machines: the login shell, looked up for each command. Default: a POSIX shell without start-up
   * files.
   */
  readonly loginShell?: () => LoginShell;
  /**
   * For in-process machines: whether a connection with this many open sessions may open another, like MaxSessions.
   * Default: always.
   */
  readonly admitsSession?: (openSessions: number) => boolean;
  /** For in-process machines: when their root shells end. Default: they have none. */
  readonly rootShellBreaks?: () => RootShellBreaks | undefined;
  /** For in-process machines: called with the line of each session that begins. */
  readonly onSession?: (session: SessionStart) => void;
  readonly behaviour?: Partial<Behaviour>;
  /** What judges requests and answers. Default: AWS's own model, where it is installed. */
  readonly model?: () => Ec2Model | undefined;
}

interface Parts {
  readonly driver: MachineDriver;
  readonly behaviour: BehaviourSetting;
  readonly clock: CloudClock;
  readonly faults: Faults;
  readonly addresses: PrivateAddresses;
  readonly answers: ScriptedAnswers;
  readonly initial: Behaviour;
  readonly model: () => Ec2Model | undefined;
}

/** An EC2 endpoint on 127.0.0.1 for the real SDK, with a real machine behind each instance. */
export class LocalCloud implements AsyncDisposable {
  readonly region = "us-west-2";
  readonly accessKeyId = accounts.main.accessKeyId;
  readonly secretAccessKey = accounts.main.secretAccessKey;
  /** The bearer token of the control endpoint. */
  readonly controlToken = randomBytes(30).toString("base64url");
  readonly faults: Faults;
  readonly behaviour: BehaviourSetting;
  readonly clock: CloudClock;
  readonly requests = new RequestLog();
  readonly answers: ScriptedAnswers;
  readonly #parts: Parts;
  readonly #ec2: Ec2Endpoint;
  readonly #server: Bun.Server<undefined>;
  #lifecycle: Lifecycle;

  static async start(options: LocalCloudOptions): Promise<LocalCloud> {
    const answers = new ScriptedAnswers();
    await using opened = new AsyncDisposableStack();
    const driver = opened.use(await openDriver(options, answers));
    const initial = { ...usualBehaviour, ...options.behaviour };
    const cloud = new LocalCloud(
      {
        driver,
        answers,
        initial,
        model: options.model ?? ec2Model,
        behaviour: new BehaviourSetting(initial),
        clock: new CloudClock(),
        faults: new Faults(),
        addresses: new PrivateAddresses(),
      },
      options.port ?? 0,
    );
    // From here on, the cloud disposes of the driver.
    opened.move();
    return cloud;
  }

  private constructor(parts: Parts, port: number) {
    this.#parts = parts;
    this.faults = parts.faults;
    this.behaviour = parts.behaviour;
    this.clock = parts.clock;
    this.answers = parts.answers;
    this.#lifecycle = new Lifecycle(parts);
    const lifecycle = (): Lifecycle => this.#lifecycle;
    this.#ec2 = new Ec2Endpoint({
      ...parts,
      // Looked up each time, because a reset replaces it.
      get lifecycle() {
        return lifecycle();
      },
      log: this.requests,
      credentials: Object.values(accounts),
      addressRange: parts.driver.addressRange,
    });
    this.#server = serveOnLoopback((request, server) => this.#answer(request, server), { port });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** A URL that returns the caller's address, like the cloud provider's own service. */
  get checkAddressUrl(): string {
    return `${this.endpoint}/check-address`;
  }

  /** This host's address for container machines; undefined for in-process machines. */
  get gatewayAddress(): string | undefined {
    return this.#parts.driver.gatewayAddress;
  }

  /** The environment variables that a program needs to use this cloud. */
  get environment(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL_EC2: this.endpoint,
      CLOUD_ACCESS_KEY_ID: this.accessKeyId,
      CLOUD_SECRET_ACCESS_KEY: this.secretAccessKey,
      CLUSTER_CHECK_ADDRESS_URL: this.checkAddressUrl,
    };
  }

  /** All instances since the start, of all regions and accounts, including terminated ones. */
  instances(): readonly InstanceView[] {
    return this.#lifecycle.all().map((instance) => instanceView(instance, this.#lifecycle));
  }

  /** Volumes that have outlived their instances, and go on costing money. */
  remainingVolumes(): readonly Volume[] {
    const ended = this.instances().filter(({ state }) => state === "terminated");
    return ended.flatMap(({ volumes }) =>
      volumes.filter(({ deleteOnTermination }) => !deleteOnTermination),
    );
  }

  groups(): readonly GroupView[] {
    return groupViews(this.#ec2.regions);
  }

  /** Cuts a machine's power. Its instance ends as after a power-off. */
  async kill(instanceId: string): Promise<void> {
    await this.#lifecycle.kill(instanceId);
  }

  async console(instanceId: string): Promise<string> {
    return this.#lifecycle.console(instanceId);
  }

  /**
   * Restores the initial state: no machines, groups, faults or logged requests, and the initial behaviour and clock.
   */
  async reset(): Promise<void> {
    const former = this.#lifecycle;
    this.faults.clear();
    this.requests.clear();
    this.clock.skew(0);
    this.behaviour.change(this.#parts.initial);
    this.#ec2.reset();
    this.#lifecycle = new Lifecycle(this.#parts);
    await former.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
    await this.#lifecycle.close();
    await this.#parts.driver[Symbol.asyncDispose]();
    this.#assertModelKept();
  }

  /** A client may have hidden that its request has failed. */
  #assertModelKept(): void {
    const { violations } = this.#ec2;
    if (violations.length > 0)
      throw new Error(`${modelContradicted}:\n${[...new Set(violations)].join("\n")}`);
  }

  async #answer(request: Request, server: Bun.Server<undefined>): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/check-address")
      return new Response(`${server.requestIP(request)?.address ?? ""}\n`);
    if (pathname.startsWith("/_control/")) return answerControl(request, this);
    return this.#ec2.answer(request);
  }
}

async function openDriver(
  options: LocalCloudOptions,
  answers: ScriptedAnswers,
): Promise<MachineDriver> {
  if (options.driver === "in-process") {
    const block = await LoopbackBlock.claim();
    const { sshPort = 22, onExec = answers.handle, loginShell = () => ({}) } = options;
    const { admitsSession = () => true, rootShellBreaks, onSession } = options;
    return new InProcessDriver({
      block,
      sshPort,
      onExec,
      loginShell,
      admitsSession,
      rootShellBreaks,
      onSession,
    });
  }
  return ContainerDriver.open(options.directory, options.debianImage);
}
