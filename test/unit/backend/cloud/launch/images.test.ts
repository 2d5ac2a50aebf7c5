import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { findImage } from "../../../../../src/backend/cloud/launch/images.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const api = { region: "us-west-2", call: async () => Promise.resolve({ Images: [] }) } as unknown as CloudApi;
const find = async (chosen?: { readonly id: string; readonly user: string }) =>
  failureOf(findImage(api, "centos-7", chosen, new AbortController().signal));

test("if the region has no image of a distribution, the nearest ones are suggested", async () => {
  const failure = await find();
  expect(failure).toMatchObject({
    id: "image-not-found",
    message: expect.stringMatching(/^There is no image of centos-7 \(".+", owner \d+\) in region us-west-2\.$/),
    hint: "Choose `linuxDistribution rocky-8 or almalinux-8`, another `region`, or pass an image with `image` and `sshUser`.",
  });
  expect(failure.facts).not.toHaveProperty("image");
});

test("if the user's own image doesn't exist, no distribution is suggested", async () => {
  expect(await find({ id: "ami-0123456789abcdef0", user: "admin" })).toMatchObject({
    message: "There is no image ami-0123456789abcdef0 in region us-west-2.",
    hint: "Choose another `linuxDistribution`, another `region`, or pass an image with `image` and `sshUser`.",
    facts: { image: "ami-0123456789abcdef0" },
  });
});
