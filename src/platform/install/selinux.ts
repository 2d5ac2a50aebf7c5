import { type Phase, runRemoteScript } from "./phase.ts";

/** Takes effect at once and after a reboot. A system with SELinux disabled could only switch with a reboot, so the script refuses it. */
export const selinuxScript = `
main() {
  command -v getenforce >/dev/null || fail 'this system has no SELinux'
  [ "$(getenforce)" != Disabled ] || fail 'SELinux is disabled in this system'
  setenforce 1
  sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
  [ "$(getenforce)" = Enforcing ] || fail "SELinux is still $(getenforce)"
}
`;

export const enforceSelinux: Phase = {
  title: "Enforce SELinux",
  run: async ({ connection, reference }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-selinux",
        text: selinuxScript,
        arguments: [],
        limitMs: 60_000,
        task: "setting SELinux to enforcing",
        failure: `${reference}: cannot set SELinux to enforcing`,
        errorId: "install-failed",
      },
      signal,
    );
  },
};
