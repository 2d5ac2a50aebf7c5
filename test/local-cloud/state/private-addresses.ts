import { addressAt, addressNumber, sizeOf } from "../catalogue/networks.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";

const reservedAtStart = 4;

/** Allocates private addresses in the subnets. There is one pool for the whole cloud, because all machines share one network. */
export class PrivateAddresses {
  readonly #used = new Set<string>();
  readonly #turns = new Map<string, number>();

  /** Returns the next free address of a subnet, round robin, so that an address isn't reused at once. */
  take(cidr: string): string {
    const size = sizeOf(cidr);
    for (let tries = 0; tries < size; tries += 1) {
      const turn = this.#turns.get(cidr) ?? 0;
      this.#turns.set(cidr, (turn + 1) % size);
      const address = addressAt(cidr.split("/")[0]!, reservedAtStart + turn);
      if (!this.#used.has(address)) {
        this.#used.add(address);
        return address;
      }
    }
    throw new Ec2Error(
      "InsufficientFreeAddressesInSubnet",
      "There are not enough free addresses in the subnet",
    );
  }

  free(cidr: string): number {
    const start = addressNumber(cidr.split("/")[0]!);
    const end = start + 2 ** (32 - Number(cidr.split("/")[1]));
    const used = [...this.#used]
      .map(addressNumber)
      .filter((address) => address >= start && address < end);
    return sizeOf(cidr) - used.length;
  }

  release(address: string): void {
    this.#used.delete(address);
  }
}
