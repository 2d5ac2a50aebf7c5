import { fixedId } from "./resource-id.ts";

export interface Image {
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  /** The distribution that boots, such as `debian-12`. */
  readonly distribution: string;
  /** The user that cloud-init creates on this image. */
  readonly user: string;
  readonly creationDate: string;
  readonly deprecated: boolean;
  readonly state: "available" | "pending";
  readonly architecture: "x86_64" | "arm64";
  readonly virtualizationType: "hvm" | "paravirtual";
  readonly rootDeviceName: string;
  readonly rootSizeGiB: number;
  /** The image's further devices: volumes and, without a size, disks of the host. */
  readonly furtherDevices: readonly Device[];
  /** Whether the publisher states that its machines don't need version 1 of the instance metadata. */
  readonly imdsSupport: "v2.0" | undefined;
}

interface Device {
  readonly deviceName: string;
  readonly sizeGiB?: number;
  readonly deleteOnTermination?: boolean;
}

interface Family {
  readonly distribution: string;
  readonly owner: string;
  readonly user: string;
  /** The image's name. `VERSION` and `ARCH` are replaced. */
  readonly name: string;
  readonly arm: string | undefined;
  readonly versions: readonly string[];
  readonly rootDeviceName: string;
  readonly rootSizeGiB: number;
  readonly deprecated?: true;
  readonly furtherDevices?: readonly Device[];
}

const redHat = {
  owner: "309956199498",
  user: "ec2-user",
  rootDeviceName: "/dev/sda1",
  rootSizeGiB: 10,
};
const rocky = {
  owner: "792107900819",
  user: "rocky",
  rootDeviceName: "/dev/sda1",
  rootSizeGiB: 10,
  arm: "aarch64",
};
const alma = {
  owner: "764336703387",
  user: "ec2-user",
  rootDeviceName: "/dev/sda1",
  rootSizeGiB: 10,
  arm: "aarch64",
};
const debian = {
  owner: "136693071363",
  user: "admin",
  rootDeviceName: "/dev/xvda",
  rootSizeGiB: 8,
  arm: "arm64",
};
const ubuntu = {
  owner: "099720109477",
  user: "ubuntu",
  rootDeviceName: "/dev/sda1",
  rootSizeGiB: 8,
  arm: "arm64",
};
/** The main account's images (endpoint/accounts.ts). */
const own = { owner: "111122223333", user: "admin", rootDeviceName: "/dev/xvda", rootSizeGiB: 8 };
const amazon = {
  owner: "137112412989",
  user: "ec2-user",
  rootDeviceName: "/dev/xvda",
  rootSizeGiB: 8,
};

/** Names, owners and users as published. Versions are listed from old to new, each with its date as yyyymmdd. */
const families: readonly Family[] = [
  {
    distribution: "centos-7",
    owner: "125523088429",
    user: "centos",
    name: "CentOS Linux 7 ARCH - VERSION",
    arm: "aarch64",
    versions: ["2009 20201103", "2111 20211119", "2211 20221118"],
    rootDeviceName: "/dev/sda1",
    rootSizeGiB: 8,
    deprecated: true,
  },
  published(redHat, "rhel-7", "RHEL-7.9_HVM-VERSION-ARCH-0-Hourly2-GP2", [
    "20231116 20231116",
    "20240930 20240930",
  ]),
  published(redHat, "rhel-8", "RHEL-8VERSION-ARCH-0-Hourly2-GP3", [
    ".9.0_HVM-20240327 20240327",
    ".10.0_HVM-20250909 20250909",
  ]),
  published(redHat, "rhel-9", "RHEL-9VERSION-ARCH-0-Hourly2-GP3", [
    ".5.0_HVM-20250313 20250313",
    ".6.0_HVM-20250910 20250910",
  ]),
  published(rocky, "rocky-8", "Rocky-8-EC2-Base-VERSION.ARCH", [
    "8.9-20231119.0 20231119",
    "8.10-20240528.0 20240528",
  ]),
  published(rocky, "rocky-9", "Rocky-9-EC2-Base-VERSION.ARCH", [
    "9.5-20241118.0 20241118",
    "9.6-20250531.0 20250531",
  ]),
  published(alma, "almalinux-8", "AlmaLinux OS 8.VERSION ARCH", [
    "9.20231123 20231123",
    "10.20240530 20240530",
  ]),
  published(alma, "almalinux-9", "AlmaLinux OS 9.VERSION ARCH", [
    "5.20241120 20241120",
    "6.20250522 20250522",
  ]),
  published(debian, "debian-11", "debian-11-ARCH-VERSION", [
    "20241202-1949 20241202",
    "20250505-2103 20250505",
  ]),
  published(debian, "debian-12", "debian-12-ARCH-VERSION", [
    "20250316-2053 20250316",
    "20250814-2204 20250814",
    "20250903-2225 20250903",
  ]),
  published(debian, "debian-13", "debian-13-ARCH-VERSION", [
    "20250814-2205 20250814",
    "20250924-2246 20250924",
  ]),
  published(ubuntu, "ubuntu-20", "ubuntu/images/hvm-ssd/ubuntu-focal-20.04-ARCH-server-VERSION", [
    "20250213 20250213",
    "20250624 20250624",
  ]),
  published(ubuntu, "ubuntu-22", "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-ARCH-server-VERSION", [
    "20250712 20250712",
    "20250916 20250916",
  ]),
  published(
    ubuntu,
    "ubuntu-24",
    "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-ARCH-server-VERSION",
    ["20250704 20250704", "20250821 20250821"],
  ),
  published(amazon, "amazon-2", "amzn2-ami-kernel-5.10-hvm-2.0.VERSION-ARCH-gp2", [
    "20250728.1 20250728",
    "20250902.3 20250902",
  ]),
  published(amazon, "amazon-2023", "al2023-ami-2023.8.VERSION-kernel-6.1-ARCH", [
    "20250804.0 20250804",
    "20250915.0 20250915",
  ]),
  // For `--image`: Debian with the packages that the dcos layout needs (test/dcos-platform/machine-image).
  {
    ...published(own, "debian-12-docker", "our-debian-12-with-docker-VERSION", ["1 20251006"]),
    furtherDevices: [
      { deviceName: "/dev/xvdb", sizeGiB: 20, deleteOnTermination: false },
      { deviceName: "/dev/xvdc", sizeGiB: 5, deleteOnTermination: true },
      { deviceName: "/dev/xvdd" },
    ],
  },
];

/** Families whose publishers state that. */
const metadata2Families: ReadonlySet<string> = new Set(["amazon-2023", "debian-13", "ubuntu-24"]);

/** The owner of look-alike images, which are newer than the genuine ones. A program must never launch them. */
export const lookAlikeOwner = "666666666666";

/** Returns all images of a region: every version of every family, the same for arm64, look-alikes, and one that is still being created. */
export function imagesOf(region: string): readonly Image[] {
  // ap-southeast-2 represents the regions in which a publisher has no images.
  const present = families.filter(
    (one) => region !== "ap-southeast-2" || one.distribution !== "centos-7",
  );
  return present.flatMap((one) => [...versionsOf(one, region), ...trapsOf(one, region)]);
}

function versionsOf(family: Family, region: string): readonly Image[] {
  return family.versions.flatMap((version) => {
    const [name, date] = version.split(" ") as [string, string];
    const intel = imageOf(family, name, date, region);
    if (family.arm === undefined) return [intel];
    const armName = nameOf(family, name, family.arm);
    return [
      intel,
      {
        ...intel,
        id: fixedId("ami", region + armName),
        name: armName,
        architecture: "arm64" as const,
      },
    ];
  });
}

function trapsOf(family: Family, region: string): readonly Image[] {
  const newest = imageOf(family, family.versions.at(-1)!.split(" ")[0]!, "20261001", region);
  const trap = (what: string, changes: Partial<Image>): Image => ({
    ...newest,
    id: fixedId("ami", `${region}${what}${newest.name}`),
    ...changes,
  });
  return [
    trap("look-alike", { owner: lookAlikeOwner, deprecated: false }),
    trap("unfinished", { state: "pending" }),
    trap("paravirtual", { virtualizationType: "paravirtual" }),
  ];
}

function imageOf(family: Family, version: string, date: string, region: string): Image {
  const name = nameOf(family, version, family.arm === "arm64" ? "amd64" : "x86_64");
  return {
    id: fixedId("ami", region + name),
    name,
    owner: family.owner,
    distribution: family.distribution,
    user: family.user,
    creationDate: `${date.replace(/(\d{4})(\d\d)(\d\d)/, "$1-$2-$3")}T05:30:00.000Z`,
    deprecated: family.deprecated ?? false,
    state: "available",
    architecture: "x86_64",
    virtualizationType: "hvm",
    rootDeviceName: family.rootDeviceName,
    rootSizeGiB: family.rootSizeGiB,
    furtherDevices: family.furtherDevices ?? [],
    imdsSupport: metadata2Families.has(family.distribution) ? "v2.0" : undefined,
  };
}

function nameOf({ name }: Family, version: string, architecture: string): string {
  return name.replace("VERSION", version).replace("ARCH", architecture);
}

function published(
  maker: Pick<Family, "owner" | "user" | "rootDeviceName" | "rootSizeGiB"> & {
    readonly arm?: string;
  },
  distribution: string,
  name: string,
  versions: readonly string[],
): Family {
  return { ...maker, arm: maker.arm, distribution, name, versions };
}
