import { createHash, timingSafeEqual } from "node:crypto";
import type { Behaviour } from "../behaviour.ts";
import type { LocalCloud } from "../local-cloud.ts";
import type { ScriptedAnswer } from "../machines/scripted-answers.ts";
import { readBehaviour, readFault, readSkewMs } from "./read-body.ts";

type Operation = (cloud: LocalCloud, body: unknown, id: string) => unknown;

/**
 * Lets tests in another process control the local cloud: JSON over `/_control/…`. The body of a `POST` is the parameter
 * of a method of LocalCloud; the response to a `GET` is the value of a property. Each request has the announced token.
 */
const operations: Readonly<Record<string, Operation>> = {
  "GET /requests": ({ requests }) => ({
    total: requests.entries.length,
    counts: requests.counts(),
    requests: requests.entries,
  }),
  "DELETE /requests": ({ requests }) => requests.clear(),
  "POST /faults": ({ faults }, body) => void faults.add(readFault(body)),
  "DELETE /faults": ({ faults }) => faults.clear(),
  "GET /behaviour": ({ behaviour }): Behaviour => behaviour.current,
  "POST /behaviour": ({ behaviour }, body) => behaviour.change(readBehaviour(body)),
  "POST /clock": (cloud, body) => cloud.clock.skew(readSkewMs(body)),
  "GET /instances": (cloud) => cloud.instances(),
  "POST /instances/ID/kill": async (cloud, _body, id) => cloud.kill(id),
  "GET /instances/ID/console": async (cloud, _body, id) => ({ console: await cloud.console(id) }),
  "GET /groups": (cloud) => cloud.groups(),
  "GET /commands": ({ answers }) => answers.answered,
  "POST /answers": ({ answers }, body) => answers.replace(body as readonly ScriptedAnswer[]),
  "POST /reset": async (cloud) => cloud.reset(),
};

export async function answerControl(request: Request, cloud: LocalCloud): Promise<Response> {
  const authorization = request.headers.get("authorization") ?? "";
  if (!isSame(authorization, `Bearer ${cloud.controlToken}`))
    return failure(401, "the token of this local cloud is missing");
  const path = new URL(request.url).pathname.replace(/^\/_control/, "");
  const id = /^\/instances\/([^/]+)\//.exec(path)?.[1] ?? "";
  const operation = operations[`${request.method} ${id === "" ? path : path.replace(id, "ID")}`];
  if (operation === undefined) return failure(404, `no such control: ${request.method} ${path}`);
  try {
    const text = await request.text();
    const result = await operation(cloud, text === "" ? {} : JSON.parse(text), id);
    return Response.json(result ?? {});
  } catch (error) {
    return failure(400, error instanceof Error ? error.message : String(error));
  }
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(one!, other!);
}

function failure(status: number, error: string): Response {
  return Response.json({ error }, { status });
}
