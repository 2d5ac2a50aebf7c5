/** Prints what this process knows of another one, as JSON. Arguments, as JSON: its identity, files that it may hold, a lock. */
import { systemClock } from "../../../../src/system/runtime.ts";
import {
  acquireProcessLock,
  holdsFile,
  isProcessAlive,
} from "../../../../src/system/processes/process-identity.ts";

const [identity, files, lock] = process.argv.slice(2).map((word) => JSON.parse(word));
const holds = await Promise.all(files.map(async (file: string) => holdsFile(identity.pid, file)));
const given = new AbortController();
const advice = { text: "taken" };
const onWait = (text: string): void => {
  advice.text = text;
  given.abort(new Error("enough"));
};
const taken = await acquireProcessLock(lock, { clock: systemClock, onWait }, given.signal).catch(
  () => undefined,
);
await taken?.[Symbol.asyncDispose]();
const isAlive = await isProcessAlive(identity);
console.log(JSON.stringify({ isAlive, holds, lock: advice.text }));
