#!/usr/bin/env python3
"""Verifies what a gpd consent log says of itself, offline: Python's standard library and openssl, no code of gpd's.

  python3 verify.py PROOF VKEY                  one entry, by its proof (c2sp.org/tlog-proof)
  python3 verify.py LOG.ndjson CHECKPOINT VKEY  a whole exported log, by a signed checkpoint

Exit 0: everything holds. Exit 1: a check failed, and its name is printed. Exit 2: nothing could be checked.
"""
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ED25519 = 1
SPKI = bytes.fromhex('302a300506032b6570032100')  # RFC 8410: what stands before the 32 bytes of an Ed25519 key in DER


class Failed(Exception):
    def __init__(self, check, why):
        super().__init__(f'{check}: {why}')


def sha256(data):
    return hashlib.sha256(data).digest()


def leaf_hash(entry):
    return sha256(b'\0' + entry)  # RFC 6962 section 2.1


def node_hash(left, right):
    return sha256(b'\1' + left + right)


def unbase64(text, check):
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Failed(check, 'not base64')


def number(text, check):
    if not re.fullmatch(r'0|[1-9][0-9]{0,17}', text):
        raise Failed(check, f'not a number: {text[:40]!r}')
    return int(text)


def read_key(text):
    """NAME+ID+BASE64, a verifier key of a signed note. The base64 may hold plus signs itself."""
    parts = text.strip().split('+', 2)
    if len(parts) != 3:
        raise Failed('verifier key', 'not of the form NAME+ID+KEY')
    name, key_id, encoded = parts
    key = unbase64(encoded, 'verifier key')
    if len(key) != 33 or key[0] != ED25519:
        raise Failed('verifier key', 'not an Ed25519 key')
    if sha256(name.encode() + b'\n' + key)[:4].hex() != key_id:
        raise Failed('key id', f'{key_id} is not the id of this name and this key')
    return name, key_id, key[1:]


def read_proof(text):
    head, gap, checkpoint = text.partition('\n\n')
    lines = head.split('\n')
    if not gap or len(lines) < 3 or lines[0] != 'c2sp.org/tlog-proof@v1':
        raise Failed('proof', 'not a c2sp.org/tlog-proof@v1')
    if not lines[1].startswith('extra ') or not lines[2].startswith('index '):
        raise Failed('proof', 'the entry (extra) or its index is missing')
    path = [unbase64(line, 'proof') for line in lines[3:]]
    if any(len(step) != 32 for step in path):
        raise Failed('proof', 'a hash of the path is not 32 bytes long')
    return unbase64(lines[1][6:], 'proof'), number(lines[2][6:], 'proof'), path, checkpoint


def read_checkpoint(text, name, key_id, key):
    """Size and root, once the signature of this key over them holds."""
    body, gap, signatures = text.rpartition('\n\n')
    lines = body.split('\n')
    if not gap or len(lines) < 3:
        raise Failed('checkpoint', 'not a signed note of origin, size and root')
    if lines[0] != name:
        raise Failed('origin', f'the checkpoint is of the log {lines[0]!r}, the key of {name!r}')
    size, root = number(lines[1], 'checkpoint'), unbase64(lines[2], 'checkpoint')
    mark = '\u2014 ' + name + ' '
    found = [unbase64(line[len(mark):], 'signature') for line in signatures.split('\n') if line.startswith(mark)]
    ours = [signature[4:] for signature in found if signature[:4].hex() == key_id]
    if not ours:
        raise Failed('signature', f'the checkpoint carries none of key {key_id}')
    if not all(is_signed(key, (body + '\n').encode(), signature) for signature in ours):
        raise Failed('signature', 'this key did not sign this checkpoint')
    return size, root


def is_signed(key, text, signature):
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for kind, content in (('key', SPKI + key), ('text', text), ('signature', signature)):
            files[kind] = os.path.join(folder, kind)
            with open(files[kind], 'wb') as file:
                file.write(content)
        command = ['openssl', 'pkeyutl', '-verify', '-pubin', '-keyform', 'DER', '-inkey', files['key']]
        command += ['-rawin', '-in', files['text'], '-sigfile', files['signature']]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def root_by_path(index, size, leaf, path):
    """RFC 9162 section 2.1.3.2; None when the path has another length than index and size want."""
    at, last, root = index, size - 1, leaf
    for step in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = node_hash(step, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node_hash(root, step)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def root_of(leaves):
    """The root over all leaves, RFC 6962 section 2.1: whole subtrees wait on a stack for their right neighbours."""
    stack = []
    for leaf in leaves:
        stack.append((1, leaf))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            (width, right), (_, left) = stack.pop(), stack.pop()
            stack.append((2 * width, node_hash(left, right)))
    if not stack:
        return sha256(b'')
    _, root = stack.pop()
    while stack:
        root = node_hash(stack.pop()[1], root)
    return root


def verify_proof(proof_text, key_text):
    name, key_id, key = read_key(key_text)
    entry, index, path, checkpoint = read_proof(proof_text)
    size, root = read_checkpoint(checkpoint, name, key_id, key)
    leaf = leaf_hash(entry)
    if index >= size or root_by_path(index, size, leaf, path) != root:
        raise Failed('inclusion', f'this entry is not number {index} of the {size} that the checkpoint is over')
    print('OK entry', index, 'of', size, 'leaf', leaf.hex())
    print(entry.decode('utf8', 'backslashreplace'))


def read_entries(log_text):
    for at, line in enumerate(log_text.rstrip('\n').split('\n')):
        try:
            row = json.loads(line)
            seq, entry, claimed = row['seq'], row['entry'].encode(), row['hash']
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failed('log', f'line {at + 1} is no exported entry')
        if seq != at:
            raise Failed('log', f'line {at + 1} is entry {seq!r}: one is missing, or the order was changed')
        if leaf_hash(entry).hex() != claimed:
            raise Failed('entry', f'entry {at} does not have the hash given with it')
        yield entry


def verify_log(log_text, checkpoint_text, key_text):
    name, key_id, key = read_key(key_text)
    size, root = read_checkpoint(checkpoint_text, name, key_id, key)
    leaves = [leaf_hash(entry) for entry in read_entries(log_text)]
    if len(leaves) != size:
        raise Failed('size', f'the log has {len(leaves)} entries, the checkpoint is over {size}')
    if root_of(leaves) != root:
        raise Failed('root', 'these entries do not give the root of the checkpoint: one of them was changed')
    print('OK log of', size, 'entries, root', base64.b64encode(root).decode())


def read_text(name):
    try:
        with open(name, encoding='utf8', newline='') as file:
            return file.read()
    except UnicodeDecodeError:
        raise Failed('file', f'{name} is not UTF-8 text')
    except OSError as error:
        print(f'{name}: {error.strerror}: nothing was checked', file=sys.stderr)
        sys.exit(2)


def main(names):
    if len(names) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which('openssl') is None:
        print('openssl is not in the PATH: nothing was checked', file=sys.stderr)
        return 2
    try:
        texts = [read_text(name) for name in names]
        (verify_proof if len(texts) == 2 else verify_log)(*texts)
    except Failed as failed:
        print(f'FAILED {failed}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
