import { shellText } from "./shell-text.ts";
import replaceHostKey from "./replace-host-key.sh" with { type: "text" };

/** Where a node's sshd keeps its host keys, and how to make it read them again. */
export interface HostKeyLocation {
  readonly folder: string;
  /** A shell line, run as root. It must not end open sessions. */
  readonly reload: string;
}

/** Correct for all supported distributions: Debian and Ubuntu call the unit ssh, the others sshd. */
export const systemHostKeyLocation: HostKeyLocation = {
  folder: "/etc/ssh",
  reload: "systemctl reload ssh.service 2>/dev/null || systemctl reload sshd.service",
};

/** Its arguments are the folder and the reload line. */
export const replaceHostKeyScript = shellText(replaceHostKey);
