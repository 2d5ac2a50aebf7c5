/** What an engine must have, so that its containers can be nodes. */
import { ClusterError } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { outsideLine } from "../../../system/printable.ts";
import type { Limits } from "../limits.ts";
import type { EngineFacts, EngineKind } from "./engine-kind.ts";

/** Throws `machine-not-set-up` if no node can run in this engine. */
export function assertUsable(kind: EngineKind, facts: EngineFacts): void {
  assertNotConfined(kind, facts);
  assertOwnGroups(kind, facts);
  assertEnoughUsers(kind, facts);
}

/** Debian's `nobody` has the number 65,534. */
const usualUsers = 65_536;

/** Throws `machine-not-set-up` for a rootless engine whose containers have fewer users than a usual system. */
export function assertEnoughUsers(
  { title, advice }: Pick<EngineKind, "title" | "advice">,
  { userCount }: Pick<EngineFacts, "userCount">,
): void {
  if (userCount === undefined || userCount >= usualUsers) return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless with ${userCount} users and groups for containers, and a node needs ${usualUsers}.`,
    {
      hint: `Give this user ranges in /etc/subuid and /etc/subgid that nobody else has:\n    sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER && ${advice.users}`,
      facts: { users: userCount },
    },
  );
}

const delegation =
  "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload";

/** Throws `machine-not-set-up` for a limit that the engine would ignore or refuse. */
export function assertLimitsWork(
  { title }: Pick<EngineKind, "title">,
  { idleLimits, isRootless }: Pick<EngineFacts, "idleLimits" | "isRootless">,
  limits: Limits,
): void {
  const idle = idleLimits.find((name) => limits[name] !== undefined);
  if (idle === undefined) return;
  const how = isRootless
    ? `delegate its controller to users, then log in again:\n    ${delegation}`
    : `enable its controller: with the kernel's option cgroup_enable=${idle === "cpus" ? "cpu" : idle}, for example.`;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} has no control groups for the limit ${optionName(idle)} here.`,
    { hint: `Use a cluster without ${optionName(idle)}, or ${how}`, facts: { limit: idle } },
  );
}

/** Only with cgroups 2 may a container of an ordinary user have control groups, which systemd needs. */
export function assertNotConfined(
  { title, advice }: EngineKind,
  {
    isRootless,
    cgroupVersion,
    hasRemappedUsers,
  }: Pick<EngineFacts, "isRootless" | "cgroupVersion" | "hasRemappedUsers">,
): void {
  if (hasRemappedUsers)
    throw new ClusterError(
      "machine-not-set-up",
      `${title}'s daemon has userns-remap: containers may not be privileged there, and with --userns=host all files of a node would belong to another user than root.`,
      {
        hint: "Use a daemon without userns-remap. A rootless one keeps root on a node away from this computer just as well: https://docs.docker.com/engine/security/rootless/",
        facts: { remapped: true },
      },
    );
  if (!isRootless || cgroupVersion === "2") return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless under cgroups 1 here: its containers get no control groups of their own, which the nodes' systemd needs.`,
    { hint: advice.rootless, facts: { rootless: true } },
  );
}

/** Without its user's systemd, a rootless engine leaves containers in the control group that it runs in itself. */
function assertOwnGroups(
  { title, advice }: EngineKind,
  { isRootless, cgroupManager }: Pick<EngineFacts, "isRootless" | "cgroupManager">,
): void {
  if (!isRootless || cgroupManager === "systemd") return;
  throw new ClusterError(
    "machine-not-set-up",
    `${title} runs rootless without this user's systemd (${outsideLine(cgroupManager) || "no"} control groups), so its containers get no control groups of their own, which the nodes' systemd needs.`,
    { hint: advice.session, facts: { cgroupManager } },
  );
}
