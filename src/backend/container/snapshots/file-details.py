# Keeps what an engine's image lacks of a node's files: extended attributes, of which engines save only capabilities;
# the holes of sparse files, which engines write as zeros; and times before 1970 or after 2261, for which engines write
# 1970. `save FILE`, which the engine runs in the node as root shortly before it is saved, writes a JSON object a line for
# each such file: its "paths", of which hard links have several; its "attributes", names with values; whether it is
# "sparse"; and such a time, "modified", in nanoseconds. Paths and values are in hexadecimal. `restore FILE`, which
# start-system.sh runs in a container of the snapshot, brings them back. Prints a line for each file where it can't.

import binascii, json, os, re, shutil, stat, sys

ignored = "security.capability", "security.selinux"
least_sparse = 1 << 20
kept_times = range(0, 9214646400 * 10**9)
chunk = 1 << 16


def hexadecimal(value):
    return binascii.hexlify(value).decode()


def mount_points():
    with open("/proc/self/mountinfo", "rb") as lines:
        fields = [line.split()[4] for line in lines]
    return set(re.sub(br"\\([0-7]{3})", lambda found: bytes([int(found.group(1), 8)]), field) for field in fields)


def walk(top):
    # Files can be mounted too: these are another computer's.
    mounted = mount_points()
    folders = [top]
    while folders:
        folder = folders.pop()
        yield folder
        try:
            entries = list(os.scandir(folder))
        except OSError:
            # It was removed meanwhile.
            continue
        for entry in entries:
            if entry.path in mounted:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                yield entry.path


def attributes_of(path):
    try:
        names = [name for name in os.listxattr(path, follow_symlinks=False) if name not in ignored]
        return dict((name, hexadecimal(os.getxattr(path, name, follow_symlinks=False))) for name in names)
    except OSError:
        # It was removed meanwhile, or its file system has no attributes.
        return {}


def is_sparse(found):
    return stat.S_ISREG(found.st_mode) and found.st_size >= least_sparse and found.st_blocks * 1024 < found.st_size


def save(output):
    linked = {}
    for path in walk(b"/"):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        attributes, sparse, modified = attributes_of(path), is_sparse(found), found.st_mtime_ns
        if not attributes and not sparse and modified in kept_times:
            continue
        line = {"paths": [], "attributes": attributes, "sparse": sparse}
        if modified not in kept_times:
            line["modified"] = modified
        has_links = found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode)
        if has_links:
            line = linked.setdefault((found.st_dev, found.st_ino), line)
        line["paths"].append(hexadecimal(path))
        if not has_links:
            output.write(json.dumps(line) + "\n")
    for line in linked.values():
        output.write(json.dumps(line) + "\n")


# Writes a file again with holes where it has zeros, since zeros of an image can't become holes. Its data may have changed
# since its details were saved, so only the file shows where they are.
def dig(path, draft):
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        return
    with open(path, "rb") as old, open(draft, "wb") as new:
        for data in iter(lambda: old.read(chunk), b""):
            if data.count(0) == len(data):
                new.seek(len(data), os.SEEK_CUR)
            else:
                new.write(data)
        new.truncate()
    os.chown(draft, found.st_uid, found.st_gid)
    shutil.copystat(path, draft)
    os.rename(draft, path)


def set_attributes(path, attributes):
    for name, value in attributes.items():
        try:
            os.setxattr(path, name, binascii.unhexlify(value), follow_symlinks=False)
        except OSError as error:
            sys.stdout.write("cannot set the attribute %s: %s\n" % (name, error))


def set_details(path, line):
    set_attributes(path, line["attributes"])
    # What was written after its details were saved has a time of its own.
    found = os.lstat(path)
    if "modified" in line and found.st_mtime_ns == 0:
        os.utime(path, ns=(found.st_atime_ns, line["modified"]), follow_symlinks=False)


# What changes a file of an image makes a copy of it, without its hard links.
def restore_file(paths, line, draft):
    links = [path for path in paths[1:] if os.path.samestat(os.lstat(path), os.lstat(paths[0]))]
    if line["sparse"]:
        dig(paths[0], draft)
    set_details(paths[0], line)
    for path in links:
        os.link(paths[0], draft, follow_symlinks=False)
        os.rename(draft, path)


def restore_line(line):
    paths = [path for path in map(binascii.unhexlify, line["paths"]) if os.path.lexists(path)]
    if not paths:
        # It was removed while the node was saved.
        return
    if len(paths) == 1 and not line["sparse"]:
        set_details(paths[0], line)
        return
    folders = dict((folder, os.stat(folder)) for folder in map(os.path.dirname, paths))
    draft = os.path.join(os.path.dirname(paths[0]), b".cluster-e2e-draft")
    try:
        restore_file(paths, line, draft)
    finally:
        if os.path.lexists(draft):
            os.remove(draft)
        for folder, found in folders.items():
            os.utime(folder, ns=(found.st_atime_ns, found.st_mtime_ns))


def restore(lines):
    for line in lines:
        try:
            restore_line(json.loads(line))
        except OSError as error:
            sys.stdout.write("cannot restore holes or links: %s\n" % error)


with open(sys.argv[2], "w" if sys.argv[1] == "save" else "r") as file:
    save(file) if sys.argv[1] == "save" else restore(file)
