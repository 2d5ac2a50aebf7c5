/** Defers a command, says so, and waits for its own end. */
import { deferCommand } from "../../../../src/system/processes/run-program.ts";

const [file = ""] = process.argv.slice(2);
await deferCommand(["/bin/sh", "-c", 'echo done >"$0"', file], {}, 60_000);
console.log("deferred");
await Bun.sleep(600_000);
