/** Ways to inject a fault into the cloud's world, and what most faults have in common. */
import type { Ended } from "../../e2e/support/executable.ts";
import type { Behaviour } from "../../local-cloud/behaviour.ts";
import { usualBehaviour } from "../../local-cloud/behaviour.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Expected, Struck } from "../fault.ts";
import { type CloudWorld, usualAnswers } from "../worlds/cloud-world.ts";

export const created: Expected = { status: 0, says: [/^faulty$/m], keepsCluster: true };

export const failed = (id: string, says: string | RegExp, status = 1): Expected => ({
  status,
  id,
  says: [says],
  keepsCluster: false,
});

/** A creation that is ended by a signal, and that keeps nothing. */
export const endedBy = (signal: "SIGINT" | "SIGTERM" | "SIGKILL"): Expected =>
  signal === "SIGKILL"
    ? { status: signal, says: [], keepsCluster: false }
    : {
        status: signal,
        id: "interrupted",
        says: ["Remove what was created: done"],
        keepsCluster: false,
      };

/** A fault that the command cannot but meet. */
export const struck = (end: () => unknown): Struck => ({
  hasStruck: () => true,
  [Symbol.asyncDispose]: async () => {
    await end();
  },
});

export const behaving =
  (changes: Partial<Behaviour>) =>
  async ({ cloud }: CloudWorld): Promise<Struck> => {
    cloud.behaviour.change(changes);
    return struck(() => cloud.behaviour.change(usualBehaviour));
  };

/** The machines answer so, before they answer as usual. */
export const answering =
  (...answers: readonly ScriptedAnswer[]) =>
  async ({ cloud }: CloudWorld): Promise<Struck> => {
    cloud.answers.replace([...answers, ...usualAnswers]);
    return struck(() => cloud.answers.replace(usualAnswers));
  };

/** A creation in another environment. */
export const duringTheFault =
  (environment: Readonly<Record<string, string>>) =>
  async (world: CloudWorld): Promise<Ended> =>
    world.run(world.createWords, { environment });
