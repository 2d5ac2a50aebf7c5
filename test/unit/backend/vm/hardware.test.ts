import { expect, test } from "bun:test";
import { hardwareOf, hardwareText } from "../../../../src/backend/vm/hardware.ts";
import { readVmOptions } from "../../../../src/backend/vm/options.ts";

test("the hardware among a cluster's options is in plans of it and of its copies, CPU model included", () => {
  const { options } = readVmOptions({ memory: "1g", cpus: 1, cpuModel: "Nehalem" });
  const hardware = hardwareOf(options);
  expect(JSON.stringify(hardware)).toBe('{"memoryMegabytes":1024,"cpus":1,"cpuModel":"Nehalem"}');
  expect(hardwareText(hardware)).toBe("1024 MB of memory, 1 CPU (Nehalem)");
  expect(hardwareOf(readVmOptions({}).options)).toStrictEqual({ memoryMegabytes: 2048, cpus: 2 });
});
