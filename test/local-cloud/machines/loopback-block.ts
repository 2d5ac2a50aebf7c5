import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";

const claimPort = 47_022;
const blockSize = 8;

/**
 * A block of about 2,000 loopback addresses (127.x.y.1 to 127.x.y+7.254), for the machines' public addresses. A listener on the block's first address
 * claims it, so that no other local cloud on this machine uses it.
 */
export class LoopbackBlock implements AsyncDisposable {
  readonly #claim: Server;
  readonly #second: number;
  readonly #third: number;
  #turn = 0;

  private constructor(claim: Server, second: number, third: number) {
    this.#claim = claim;
    this.#second = second;
    this.#third = third;
  }

  static async claim(): Promise<LoopbackBlock> {
    for (let tries = 0; tries < 50; tries += 1) {
      const second = randomInt(2, 255);
      const third = randomInt(0, 256 / blockSize) * blockSize;
      const claim = await listen(`127.${second}.${third}.0`);
      if (claim !== undefined) return new LoopbackBlock(claim, second, third);
    }
    throw new Error(
      "no free block of loopback addresses: macOS has only 127.0.0.1 unless aliases are added to lo0",
    );
  }

  /** Returns the next address of the block, round robin, so that an address isn't reused soon. */
  next(): string {
    const turn = this.#turn;
    this.#turn = (turn + 1) % (blockSize * 254);
    return `127.${this.#second}.${this.#third + Math.floor(turn / 254)}.${1 + (turn % 254)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => {
      this.#claim.close(resolve);
    });
  }
}

async function listen(address: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once("error", () => resolve(undefined));
    server.listen(claimPort, address, () => resolve(server));
  });
}
