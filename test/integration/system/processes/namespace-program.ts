/** Holds a lock and owns a creation until its stdin ends. Arguments: the lock, the creation's folder, its two ids. */
import { beginCreation } from "../../../../src/store/creation-folder.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { acquireProcessLock } from "../../../../src/system/processes/process-identity.ts";

const [lock = "", directory = "", clusterId = "", creationId = ""] = process.argv.slice(2);
const { signal } = new AbortController();
const onWait = (advice: string): void => console.log(`waits${advice}`);
await using _ = await acquireProcessLock(lock, { clock: systemClock, onWait }, signal);
await beginCreation(directory, clusterId, creationId);
console.log("holds");
await Bun.stdin.text();
