import { expect, test } from "bun:test";
import { machineWords } from "../../../../support/machine-words.ts";

test.each([true, false])(
  "a machine that is offline is reached here and reaches nothing outside, whether this computer has IPv6: %p",
  (hasIpv6) => {
    const ports = { ssh: 4000, http: 5000, https: 6000 };
    const wordsOf = (isOffline?: boolean) => machineWords({ isOffline, hasIpv6, ports }).join(" ");
    expect(wordsOf(true)).toContain(
      "user,id=outside,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:4000-:22,",
    );
    expect(wordsOf(true)).toContain("stream,id=inside");
    for (const usual of [wordsOf(), wordsOf(false)]) expect(usual).not.toContain("restrict");
  },
);
