"""Describes a physical volume of LVM that holds one logical volume, system/root, whose contents begin after one megabyte.

LVM itself needs block devices. Arguments: the megabytes of the logical volume, a multiple of 4, and the file to write.
"""

import random
import string
import struct
import sys
import zlib

EXTENT = 4  # megabytes
START = 4096  # of the description
MEGABYTE = 1024 * 1024


def crc(data):
    return zlib.crc32(data, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def name():
    return "".join(random.choice(string.ascii_letters + string.digits) for _ in range(32))


def dashed(uuid):
    cuts = [0, 6, 10, 14, 18, 22, 26, 32]
    return "-".join(uuid[begin:end] for begin, end in zip(cuts, cuts[1:]))


extents = int(sys.argv[1]) // EXTENT
physical = name()
size = (extents * EXTENT + 1) * MEGABYTE
text = """system {
id = "%s"
seqno = 1
format = "lvm2"
status = ["RESIZEABLE", "READ", "WRITE"]
flags = []
extent_size = %d
max_lv = 0
max_pv = 0
metadata_copies = 0
physical_volumes {
pv0 {
id = "%s"
device = "/dev/vda2"
status = ["ALLOCATABLE"]
flags = []
dev_size = %d
pe_start = 2048
pe_count = %d
}
}
logical_volumes {
root {
id = "%s"
status = ["READ", "WRITE", "VISIBLE"]
flags = []
segment_count = 1
segment1 {
start_extent = 0
extent_count = %d
type = "striped"
stripe_count = 1
stripes = [
"pv0", 0
]
}
}
}
}
contents = "Text Format Volume Group"
version = 1
description = ""
creation_host = "test"
creation_time = 0
""" % (dashed(name()), EXTENT * 2048, dashed(physical), size // 512, extents, dashed(name()), extents)
description = text.encode() + b"\0"

end = struct.pack("<QQ", 0, 0)
header = physical.encode() + struct.pack("<Q", size)
header += struct.pack("<QQ", MEGABYTE, 0) + end + struct.pack("<QQ", START, MEGABYTE - START) + end
header += struct.pack("<II", 2, 1) + end
checked = struct.pack("<I8s", 32, b"LVM2 001") + header
checked = checked.ljust(512 - 20, b"\0")
label = struct.pack("<8sQI", b"LABELONE", 1, crc(checked)) + checked

area = b" LVM2 x[5A%r0N*>" + struct.pack("<IQQ", 1, START, MEGABYTE - START)
area += struct.pack("<QQII", 512, len(description), crc(description), 0)
area = area.ljust(512 - 4, b"\0")
area = struct.pack("<I", crc(area)) + area

with open(sys.argv[2], "wb") as volume:
    volume.truncate(size)
    volume.seek(512)
    volume.write(label)
    volume.seek(START)
    volume.write(area + description)
