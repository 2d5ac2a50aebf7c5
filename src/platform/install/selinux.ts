import { shellText } from "../../ssh/shell-text.ts";
import selinuxFile from "./enforce-selinux.sh" with { type: "text" };
import { type Phase, runRemoteScript } from "./phase.ts";

export const selinuxScript = shellText(selinuxFile);

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
