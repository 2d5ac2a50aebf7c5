import { expect, test } from "bun:test";
import { textMask } from "../../../scripts/demo-ec2/text-mask.ts";

const environment = {
  CLOUD_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
  CLOUD_SECRET_ACCESS_KEY: "wJalr/K7MDENG",
  AWS_PROFILE: "ops-team",
  PATH: "/usr/bin",
};
const mask = textMask(environment, { "~": "/home/me", "<host>": "laptop" });

test("credentials, accounts, addresses and keys are removed from a report", () => {
  const lines = {
    "key wJalr/K7MDENG of ops-team": "key *** of ***",
    ASIAIOSFODNN7EXAMPLE: "<key id>",
    "arn:aws:iam::123456789012:user/me is not authorized": "<arn> is not authorized",
    "account 123456789012": "account <account>",
    "master_0  192.0.2.17  172.31.4.5/32": "master_0  <address>  <address>/32",
    "from 2001:db8:0:1::17": "from <address>",
    "ec2-192-0-2-17.us-west-2.compute.amazonaws.com": "<name>",
    "/home/me/state on laptop": "~/state on <host>",
    [`message: ${"aB3-_".repeat(20)}`]: "message: <…>",
  };
  for (const [text, masked] of Object.entries(lines)) expect(mask(text)).toBe(masked);
});

test("times, versions and ids stay", () => {
  const text =
    "12:34:56 UTC  2026.11.23.0  i-0123456789abcdef0  cluster-cloud run --node agent_0, /usr/bin";
  expect(mask(text)).toBe(text);
});
