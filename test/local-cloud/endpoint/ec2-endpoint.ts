import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { actions } from "../actions/actions.ts";
import type { Action, CloudParts } from "../actions/action.ts";
import { callableRegion, Region } from "../state/region.ts";
import { Ec2Error } from "./ec2-error.ts";
import type { Ec2Model } from "./ec2-model.ts";
import type { FaultOccasion } from "./faults.ts";
import { checkParameters, Parameters } from "./parameters.ts";
import { claimedRegion, loggedParameters, type RequestLog } from "./request-log.ts";
import { authenticate, type Caller, type Credentials } from "./signature.ts";
import { Throttle } from "./throttle.ts";
import { AnswerReplaced, changedAnswer, strike } from "./strike.ts";
import { answerXml, errorXml } from "./xml.ts";

const apiVersion = "2016-11-15";

interface EndpointParts extends CloudParts {
  readonly log: RequestLog;
  readonly credentials: readonly Credentials[];
  readonly addressRange: string;
  readonly model: () => Ec2Model | undefined;
}

interface Call {
  readonly action: Action;
  readonly caller: Caller;
  readonly region: Region;
  readonly parameters: Parameters;
  readonly occasion: FaultOccasion;
}

/** EC2's Query API: each call is a signed, form-encoded POST, answered with XML. */
export class Ec2Endpoint {
  readonly #parts: EndpointParts;
  /** By account and region. */
  readonly #regions = new Map<string, Region>();
  readonly #throttles = new Map<string, Throttle>();
  /** How requests and answers have contradicted AWS's own model of EC2. */
  readonly violations: string[] = [];

  constructor(parts: EndpointParts) {
    this.#parts = parts;
  }

  async answer(request: Request): Promise<Response> {
    const requestId = randomUUID();
    const body = await request.text();
    const fields = new Map(new URLSearchParams(body));
    const action = fields.get("Action") ?? "";
    const region = claimedRegion(request.headers);
    const finish = this.#parts.log.begin({
      action,
      region,
      requestId,
      parameters: loggedParameters(fields),
    });
    try {
      const caller = this.#authenticated(request, body);
      const xml = await this.#perform(this.#read(fields, caller), requestId, request.signal);
      finish("ok");
      return this.#response(200, requestId, xml);
    } catch (error) {
      if (error instanceof AnswerReplaced) {
        finish(error.outcome);
        return error.response;
      }
      const shown = shownError(error);
      finish(shown.code);
      return this.#response(
        shown.status,
        requestId,
        errorXml(shown.code, shown.message, requestId),
      );
    }
  }

  /** The regions that have been called, for the control endpoint. */
  get regions(): readonly Region[] {
    return [...this.#regions.values()];
  }

  /** Forgets groups, instances and client tokens. */
  reset(): void {
    this.#regions.clear();
    this.#throttles.clear();
  }

  #authenticated(request: Request, body: string): Caller {
    const url = new URL(request.url);
    const signed = { method: request.method, url, headers: request.headers, body };
    return authenticate(signed, this.#parts.credentials, this.#parts.clock.now());
  }

  #read(all: ReadonlyMap<string, string>, caller: Caller): Call {
    const description = callableRegion(caller.region);
    const name = all.get("Action") ?? "";
    const action = actions.get(name);
    if (action === undefined)
      throw new Ec2Error("InvalidAction", `The action ${name} is not valid for this web service.`);
    if (all.get("Version") !== apiVersion) {
      throw new Ec2Error(
        "NoSuchVersion",
        `The requested version (${all.get("Version")}) of service AmazonEC2 does not exist`,
      );
    }
    const fields = new Map([...all].filter(([field]) => field !== "Action" && field !== "Version"));
    checkParameters(fields, action.parameters, action.required);
    this.#judge(this.#parts.model()?.requestProblems(name, fields));
    const region = getOrMake(
      this.#regions,
      `${caller.credentials.accountId}/${caller.region}`,
      () => new Region(description, this.#parts.addressRange),
    );
    const occasion = { action: name, region: caller.region, fields };
    return { action, caller, region, occasion, parameters: new Parameters(fields, "") };
  }

  async #perform(call: Call, requestId: string, left: AbortSignal): Promise<string> {
    const { behaviour, faults } = this.#parts;
    const { name } = call.action;
    const { accountId } = call.caller.credentials;
    const throttle = getOrMake(
      this.#throttles,
      `${accountId}/${call.region.name}`,
      () => new Throttle(),
    );
    throttle.pass(behaviour.current.throttle, performance.now());
    if (behaviour.current.apiDelayMs > 0) await delay(behaviour.current.apiDelayMs);
    await strike(faults.take("before", call.occasion), name, left);
    if (behaviour.current.deniedActions.includes(name))
      throw unauthorized(name, accountId, behaviour.current.denialReason);
    const answer = await call.action.run({
      parameters: call.parameters,
      accountId,
      region: call.region,
      cloud: this.#parts,
      passDryRun: () => stopDryRun(call.parameters),
    });
    this.#judge(this.#parts.model()?.answerProblems(name, answer));
    const fault = faults.take("after", call.occasion);
    await strike(fault, name, left);
    return changedAnswer(answerXml(name, requestId, answer), fault);
  }

  #judge(problems: readonly string[] = []): void {
    if (problems.length === 0) return;
    const text = problems.slice(0, 5).join("; ");
    this.violations.push(text);
    throw new Ec2Error("ModelViolation", `AWS's model of EC2 contradicts the local cloud: ${text}`);
  }

  #response(status: number, requestId: string, xml: string): Response {
    const headers = {
      "Content-Type": "text/xml;charset=UTF-8",
      Date: this.#parts.clock.now().toUTCString(),
      "x-amzn-requestid": requestId,
    };
    return new Response(xml, { status, headers });
  }
}

function stopDryRun(parameters: Parameters): void {
  if (parameters.boolean("DryRun") !== true) return;
  throw new Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.");
}

function unauthorized(action: string, accountId: string, reason: string): Ec2Error {
  const encoded = Buffer.from(`denied by the test: ${action}`).toString("base64url");
  return new Ec2Error(
    "UnauthorizedOperation",
    `You are not authorized to perform this operation. User: arn:aws:iam::${accountId}:user/tester is not authorized to perform: ec2:${action} ${reason || `because no identity-based policy allows the ec2:${action} action`}. Encoded authorization failure message: ${encoded}`,
  );
}

function shownError(error: unknown): Ec2Error {
  if (error instanceof Ec2Error) return error;
  console.error(error);
  return new Ec2Error("InternalError", `An internal error has occurred: ${String(error)}`);
}

function getOrMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
