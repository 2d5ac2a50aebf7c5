import { type Behaviour, BehaviourSetting, usualBehaviour } from "./behaviour.ts";
import { CloudClock } from "./clock.ts";
import { answerControl } from "./control/control-endpoint.ts";
import { type GroupView, groupViews, type InstanceView, instanceView } from "./control/views.ts";
import { accounts } from "./endpoint/accounts.ts";
import { Ec2Endpoint } from "./endpoint/ec2-endpoint.ts";
import { Faults } from "./endpoint/faults.ts";
import { RequestLog } from "./endpoint/request-log.ts";
import { ContainerDriver } from "./machines/container-driver.ts";
import { InProcessDriver } from "./machines/in-process-driver.ts";
import type { ExecHandler, LoginShell } from "./machines/exec.ts";
import { Lifecycle } from "./machines/lifecycle.ts";
import { LoopbackBlock } from "./machines/loopback-block.ts";
import type { MachineDriver } from "./machines/machine-driver.ts";
import { ScriptedAnswers } from "./machines/scripted-answers.ts";
import { PrivateAddresses } from "./state/private-addresses.ts";

export interface LocalCloudOptions {
  readonly driver: "container" | "in-process";
  /** An own folder that exists: machines are labelled with it, and what a killed former cloud of it left is removed first. */
  readonly directory: string;
  /** 0: any free one. */
  readonly port?: number;
  /** In-process machines' SSH port; 22 unless that can't be had. */
  readonly sshPort?: number;
  /** Instead of the table of scripted answers, for in-process machines. */
  readonly onExec?: ExecHandler;
  /** Of in-process machines, looked up for each command; a POSIX shell without start-up files unless given. */
  readonly loginShell?: () => LoginShell;
  /** Of in-process machines: whether a connection with so many open sessions gets another, as by MaxSessions; always unless given. */
  readonly admitsSession?: (openSessions: number) => boolean;
  readonly behaviour?: Partial<Behaviour>;
}

interface Parts {
  readonly driver: MachineDriver;
  readonly behaviour: BehaviourSetting;
  readonly clock: CloudClock;
  readonly faults: Faults;
  readonly addresses: PrivateAddresses;
  readonly answers: ScriptedAnswers;
  readonly initial: Behaviour;
}

/** An EC2 endpoint on 127.0.0.1 that the real SDK talks to, with a real machine behind each instance. */
export class LocalCloud implements AsyncDisposable {
  readonly region = "us-west-2";
  readonly accessKeyId = accounts.main.accessKeyId;
  readonly secretAccessKey = accounts.main.secretAccessKey;
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
        behaviour: new BehaviourSetting(initial),
        clock: new CloudClock(),
        faults: new Faults(),
        addresses: new PrivateAddresses(),
      },
      options.port ?? 0,
    );
    // From here on the cloud itself lets go of the driver.
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
      // A reset begins a new one, so it is looked up each time.
      get lifecycle() {
        return lifecycle();
      },
      log: this.requests,
      credentials: Object.values(accounts),
      addressRange: parts.driver.addressRange,
    });
    this.#server = Bun.serve({
      port,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: (request, server) => this.#answer(request, server),
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Answers with the caller's address, as the cloud maker's own service does. */
  get checkAddressUrl(): string {
    return `${this.endpoint}/check-address`;
  }

  /** This host as container machines reach it; undefined for in-process ones. */
  get gatewayAddress(): string | undefined {
    return this.#parts.driver.gatewayAddress;
  }

  /** What a program needs in its environment to use this cloud. */
  get environment(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL_EC2: this.endpoint,
      CLOUD_ACCESS_KEY_ID: this.accessKeyId,
      CLOUD_SECRET_ACCESS_KEY: this.secretAccessKey,
      CLUSTER_CHECK_ADDRESS_URL: this.checkAddressUrl,
    };
  }

  /** All instances since the start, the terminated too, of all regions and accounts. */
  instances(): readonly InstanceView[] {
    return this.#lifecycle.all().map((instance) => instanceView(instance, this.#lifecycle));
  }

  groups(): readonly GroupView[] {
    return groupViews(this.#ec2.regions);
  }

  /** Cuts a machine's power; its instance then ends as it does after a power-off. */
  async kill(instanceId: string): Promise<void> {
    await this.#lifecycle.kill(instanceId);
  }

  async console(instanceId: string): Promise<string> {
    return this.#lifecycle.console(instanceId);
  }

  /** Everything as at the start: no machines, groups, faults, logged requests; behaviour and clock as they were. */
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
  }

  async #answer(request: Request, server: Bun.Server<undefined>): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/check-address") return new Response(`${server.requestIP(request)?.address ?? ""}\n`);
    if (pathname.startsWith("/_control/")) return answerControl(request, this);
    return this.#ec2.answer(request);
  }
}

async function openDriver(options: LocalCloudOptions, answers: ScriptedAnswers): Promise<MachineDriver> {
  if (options.driver === "in-process") {
    const block = await LoopbackBlock.claim();
    const { sshPort = 22, onExec = answers.handle, loginShell = () => ({}) } = options;
    const { admitsSession = () => true } = options;
    return new InProcessDriver({ block, sshPort, onExec, loginShell, admitsSession });
  }
  return ContainerDriver.open(options.directory);
}
