import { shellText } from "../../ssh/shell-text.ts";
import deadlineFile from "./deadline.sh" with { type: "text" };
import setDeadline from "./set-deadline.sh" with { type: "text" };

/** The unit of systemd that ends a machine at its deadline. */
export const deadlineUnit = "cluster-e2e-deadline.service";

/**
 * Returns the files of a machine's deadline, for machines that get files before they boot. Archives have no links, with which systemd marks units as
 * enabled. Undefined: nothing starts the unit that the machine has as a copy.
 */
export const deadlineFiles = (deadline: Date | undefined) => [
  ...(deadline === undefined
    ? []
    : [
        { name: scriptPath.slice(1), mode: 0o755, text: scriptText },
        { name: `etc/systemd/system/${deadlineUnit}`, mode: 0o644, text: unitText(deadline) },
      ]),
  { name: "etc/systemd/system/sysinit.target.d/", mode: 0o755, text: "" },
  {
    name: "etc/systemd/system/sysinit.target.d/cluster-e2e-deadline.conf",
    mode: 0o644,
    text: deadline === undefined ? "[Unit]\n" : `[Unit]\nWants=${deadlineUnit}\n`,
  },
];

/** Returns the script that gives a machine this deadline. Undefined: it removes the one that the machine has as a copy. */
export const deadlineSetup = (deadline: Date | undefined): string =>
  shellText(setDeadline, {
    SCRIPT: scriptPath,
    SCRIPT_TEXT: scriptText,
    UNIT: deadlineUnit,
    UNIT_TEXT: deadline === undefined ? "" : unitText(deadline),
  });

const scriptPath = "/usr/local/sbin/cluster-e2e-deadline";
const scriptText = `#!/bin/sh\n${shellText(deadlineFile)}`;

/**
 * The deadline is an absolute second, so that a reboot doesn't prolong the machine's life. `DefaultDependencies=no` keeps the first attempt at
 * power-off from ending the loop itself.
 */
const unitText = (deadline: Date): string => `[Unit]
Description=End of this test machine
DefaultDependencies=no
[Service]
ExecStart=/bin/sh ${scriptPath} ${Math.floor(deadline.getTime() / 1000)}
Restart=always
[Install]
WantedBy=sysinit.target
`;
