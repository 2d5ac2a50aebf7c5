# Keeps the extended attributes of a node's files, of which engines save only capabilities. `save FILE`, which the engine
# runs in the node as root shortly before it is saved, writes a JSON list a line: path, name and value, the first and
# the last in hexadecimal. `restore FILE`, which start-system.sh runs in a container of the snapshot, sets them again.
# Prints a line for each that can't be set.

import binascii, json, os, sys

ignored = "security.capability", "security.selinux"


def walk(top):
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
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path
            elif not os.path.ismount(entry.path):
                folders.append(entry.path)


def attributes_of(path):
    for name in os.listxattr(path, follow_symlinks=False):
        if name not in ignored:
            value = os.getxattr(path, name, follow_symlinks=False)
            yield [binascii.hexlify(path).decode(), name, binascii.hexlify(value).decode()]


def save(output):
    for path in walk(b"/"):
        try:
            for line in attributes_of(path):
                output.write(json.dumps(line) + "\n")
        except OSError:
            # It was removed meanwhile, or its file system has no attributes.
            continue


def restore(lines):
    for line in lines:
        path, name, value = json.loads(line)
        try:
            os.setxattr(binascii.unhexlify(path), name, binascii.unhexlify(value), follow_symlinks=False)
        except FileNotFoundError:
            # It was removed while the node was saved.
            continue
        except OSError as error:
            sys.stdout.write("cannot set the attribute %s: %s\n" % (name, error))


with open(sys.argv[2], "w" if sys.argv[1] == "save" else "r") as file:
    save(file) if sys.argv[1] == "save" else restore(file)
