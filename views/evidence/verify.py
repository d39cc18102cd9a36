#!/usr/bin/env python3
"""Verifies a file of evidence offline: Python 3.9 and the package `cryptography`, no code of the site.

  python3 verify.py [--vkey KEY] [FOLDER | FILE.zip]

Without a name it checks the folder that it lies in. KEY is the key of the log from a source that you trust.
Exit 0: everything holds. Exit 1: each part that does not hold is named. Exit 2: nothing could be checked.
"""
import base64
import binascii
import hashlib
import hmac
import io
import json
import os
import re
import sys
import zipfile

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256
except ImportError:
    print('the package cryptography is missing: pip install cryptography', file=sys.stderr)
    sys.exit(2)

OUTSIDE = {'SHA256SUMS', 'SHA256SUMS.jws', 'made-at.txt'}
EVENTS = {
    'consent.granted': 'dpv:ConsentGiven',
    'consent.denied': 'dpv:ConsentRefused',
    'consent.withdrawn': 'dpv:ConsentWithdrawn',
    'consent.gpc-opt-out': 'dpv:ConsentRefused',
}


class Failed(Exception):
    def __init__(self, part, why):
        super().__init__(why)
        self.part = part


class Folder:
    def __init__(self, root):
        self.root = root
        found = [os.path.join(at, name) for at, _, names in os.walk(root) for name in names]
        parts = {os.path.relpath(path, root).replace(os.sep, '/') for path in found}
        self.names = {name for name in parts if '__pycache__' not in name}

    def open(self, name):
        return open(os.path.join(self.root, *name.split('/')), 'rb')


class Archive:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.names = {name for name in self.zip.namelist() if not name.endswith('/')}

    def open(self, name):
        return io.BufferedReader(self.zip.open(name), 1 << 20)


def sha256(data):
    return hashlib.sha256(data).digest()


def leaf_hash(entry):
    return sha256(b'\0' + entry)  # RFC 6962 section 2.1


def node_hash(left, right):
    return sha256(b'\1' + left + right)


def from_base64url(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


# RFC 8785, for the values that an opening has: texts, whole numbers, true, false and null.
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(',', ':'), ensure_ascii=False)


def lp4(*parts):
    return b''.join([len(part).to_bytes(4, 'big') + part for part in parts])


def commit(key, *parts):
    digest = hmac.digest(key, lp4(*parts), 'sha256')
    return base64.urlsafe_b64encode(digest).rstrip(b'=').decode()


def parse_vkey(text):
    name, key_id, encoded = text.strip().split('+', 2)
    key = base64.b64decode(encoded, validate=True)
    if len(key) != 33 or sha256(name.encode() + b'\n' + key)[:4].hex() != key_id:
        raise ValueError('not a verifier key')
    return name, key_id, key[0], ed25519.Ed25519PublicKey.from_public_bytes(key[1:])


def signatures_of(note, name, key_id):
    body, gap, lines = note.rpartition('\n\n')
    if not gap:
        raise ValueError('not a signed note')
    mark = '\u2014 ' + name + ' '
    found = [base64.b64decode(line[len(mark):], validate=True) for line in lines.split('\n') if line.startswith(mark)]
    return body + '\n', [one[4:] for one in found if one[:4].hex() == key_id]


def verify_note(note, vkey):
    """The text of a note that the log signed (C2SP signed-note)."""
    name, key_id, _, key = vkey
    text, signatures = signatures_of(note, name, key_id)
    if not signatures:
        raise ValueError('the log did not sign it')
    for signature in signatures:
        key.verify(signature, text.encode())
    return text


def verify_cosignatures(note, witnesses):
    for name, key_id, _, key in witnesses:
        text, signatures = signatures_of(note, name, key_id)
        for signature in signatures:
            time = int.from_bytes(signature[:8], 'big')
            key.verify(signature[8:], f'cosignature/v1\ntime {time}\n{text}'.encode())


def root_by_path(index, size, leaf, path):
    """RFC 9162 section 2.1.3.2."""
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


def is_consistent(size1, size2, path, root1, root2):
    """RFC 9162 section 2.1.4.2."""
    if size1 == size2:
        return not path and root1 == root2
    path = ([root1] if size1 & (size1 - 1) == 0 else []) + path
    if not path:
        return False
    at, last = size1 - 1, size2 - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old = new = path[0]
    for step in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new = node_hash(new, step)
        at, last = at >> 1, last >> 1
    return last == 0 and old == root1 and new == root2


def ranges_on_path(index, size):
    """The ranges of leaves whose roots an audit path has, in its order (RFC 6962 section 2.1.1)."""
    start, end, found = 0, size, []
    while end - start > 1:
        width = 1
        while width * 2 < end - start:
            width *= 2
        middle = start + width
        if index < middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    return found[::-1]


class Run:
    """Folds the leaves of a run of entries into the roots of its whole subtrees, so that few are kept."""

    def __init__(self, start):
        self.start, self.next, self.stack = start, start, []

    def add(self, leaf):
        width, at = 1, self.next
        self.next += 1
        while self.stack and self.stack[-1][1] == at and self.stack[-1][2] == width and self.stack[-1][0] % (2 * width) == 0:
            start, _, _, left = self.stack.pop()
            width, at, leaf = 2 * width, start, node_hash(left, leaf)
        self.stack.append((at, at + width, width, leaf))

    def root(self, size, known):
        known = dict(known)
        for start, end, _, value in self.stack:
            known[(start, end)] = value

        def hash_of(start, end):
            if (start, end) in known:
                return known[(start, end)]
            if end - start == 1:
                raise ValueError(f'entry {start} is missing')
            width = 1
            while width * 2 < end - start:
                width *= 2
            return node_hash(hash_of(start, start + width), hash_of(start + width, end))

        return hash_of(0, size)


class Cursor:
    """Rows `(part, seq, row)` in the order of the entries, so that a file of any size is checked in one pass."""

    def __init__(self, part, rows):
        self.part, self.rows = part, rows
        self.move()

    def move(self):
        self.part, self.seq, self.row = next(self.rows, (self.part, None, None))

    def take(self, seq):
        if self.seq != seq:
            self.expect_not_before(seq)
            return None
        row = self.row
        self.move()
        return row

    def expect_not_before(self, seq):
        if self.seq is not None and (seq is None or self.seq < seq):
            raise Failed(self.part, f'there is no entry {self.seq} for it, or it is out of order')


class Evidence:
    def __init__(self, files, trusted):
        self.files, self.trusted, self.failed = files, trusted, {}
        self.vkey, self.checkpoints, self.newest = None, {}, None
        self.count, self.singles, self.erasures = 0, {}, set()
        self.cursors = []

    def fail(self, part, why):
        self.failed.setdefault(part, str(why) or 'it was changed')

    def check(self, part, work, *arguments):
        try:
            return work(*arguments)
        except Failed as failed:
            self.fail(failed.part, failed)
        except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError,
                RecursionError, binascii.Error, zipfile.BadZipFile, EOFError) as error:
            self.fail(part, 'a signature is wrong' if isinstance(error, InvalidSignature) else error)
        return None

    def read(self, name):
        if name not in self.files.names:
            raise Failed(name, 'it is missing')
        with self.files.open(name) as file:
            return file.read()

    def text(self, name):
        return self.read(name).decode('utf8')

    def lines(self, name):
        if name not in self.files.names:
            raise Failed(name, 'it is missing')
        with io.TextIOWrapper(self.files.open(name), 'utf8', newline='\n') as file:
            yield from map(json.loads, file)

    def named(self, folder, ending=''):
        return sorted(name for name in self.files.names if name.startswith(folder) and name.endswith(ending))

    def run(self):
        self.check('checkpoints/vkey.txt', self.check_vkey)
        self.check('SHA256SUMS', self.check_sums)
        if self.vkey is None:
            return
        self.check('SHA256SUMS.jws', self.check_seal)
        for name in self.named('checkpoints/'):
            if re.fullmatch(r'checkpoints/[0-9]+\.txt', name):
                self.check(name, self.check_checkpoint, name)
        if not self.checkpoints:
            self.fail('checkpoints/', 'there is no checkpoint that holds')
            return
        self.newest = max(self.checkpoints)
        for name in self.named('proofs/', '.consistency'):
            self.check(name, self.check_consistency, name)
        self.check_chain()
        paths = {}
        for name in self.named('proofs/', '.tlog-proof'):
            self.check(name, self.check_proof, name, paths)
        self.check('openings.ndjson', self.open_cursor, 'openings.ndjson', self.openings(), self.check_opening)
        self.check('receipts/', self.open_cursor, 'receipts/', self.receipts(), self.check_receipt)
        self.check('entries.ndjson', self.check_entries, paths)
        self.check('tombstones.ndjson', self.check_tombstones)
        self.check('definitions/purposes.json', self.check_definitions, 'definitions/purposes.json', 'purpose.defined')
        self.check('definitions/policies.json', self.check_definitions, 'definitions/policies.json', 'policy.published')
        for name in self.named('banner/', '.json'):
            self.check(name, self.check_banner, name)

    def check_vkey(self):
        text = self.text('checkpoints/vkey.txt').strip()
        if self.trusted is not None and text != self.trusted.strip():
            raise Failed('checkpoints/vkey.txt', 'it is not the key that you trust')
        self.vkey = parse_vkey(text)

    def witnesses(self):
        name = 'checkpoints/witnesses.txt'
        return [parse_vkey(line) for line in self.text(name).split()] if name in self.files.names else []

    def check_seal(self):
        note = self.check('checkpoints/export-key.txt', lambda: verify_note(self.text('checkpoints/export-key.txt'), self.vkey))
        head, payload, signature = self.text('SHA256SUMS.jws').split('.')
        header = json.loads(from_base64url(head))
        jwk, alg = header['jwk'], header['alg']
        thumbprint = base64.urlsafe_b64encode(sha256(json.dumps(
            {name: jwk[name] for name in ('crv', 'kty', 'x', 'y')}, separators=(',', ':')).encode())).rstrip(b'=').decode()
        if alg != 'ES256' or header['kid'] != thumbprint:
            raise ValueError('its header is not of this key')
        expected = f'gpd/export-key/v1\n{self.vkey[0]}\n{thumbprint}\n{jwk["x"]} {jwk["y"]}\n'
        if note is not None and note != expected:
            raise ValueError('the log did not sign the key of the seal')
        x, y = (int.from_bytes(from_base64url(jwk[name]), 'big') for name in ('x', 'y'))
        key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        raw = from_base64url(signature)
        if len(raw) != 64 or base64.urlsafe_b64encode(raw).rstrip(b'=').decode() != signature:
            raise ValueError('its signature is malformed')
        both = (int.from_bytes(raw[:32], 'big'), int.from_bytes(raw[32:], 'big'))
        key.verify(encode_dss_signature(*both), f'{head}.{payload}'.encode(), ec.ECDSA(SHA256()))
        if from_base64url(payload) != self.read('SHA256SUMS'):
            raise Failed('SHA256SUMS', 'it is not the text that was sealed')

    def check_sums(self):
        listed = {}
        for line in self.text('SHA256SUMS').splitlines():
            digest, _, name = line.partition('  ')
            listed[name] = digest
        for name in sorted(self.files.names - OUTSIDE - set(listed)):
            self.fail(name, 'SHA256SUMS does not list it')
        for name, digest in listed.items():
            self.check(name, self.check_sum, name, digest)

    def check_sum(self, name, digest):
        if name not in self.files.names:
            raise Failed(name, 'it is missing')
        found = hashlib.sha256()
        with self.files.open(name) as file:
            for chunk in iter(lambda: file.read(1 << 20), b''):
                found.update(chunk)
        if found.hexdigest() != digest:
            raise Failed(name, 'its bytes were changed')

    def parse_checkpoint(self, note):
        lines = verify_note(note, self.vkey).split('\n')
        if lines[0] != self.vkey[0]:
            raise ValueError('it is of another log')
        return int(lines[1]), base64.b64decode(lines[2], validate=True)

    def check_checkpoint(self, name):
        note = self.text(name)
        size, root = self.parse_checkpoint(note)
        verify_cosignatures(note, self.witnesses())
        if name != f'checkpoints/{size}.txt':
            raise ValueError('its name is not its size')
        self.checkpoints[size] = root

    def check_consistency(self, name):
        head, _, note = self.text(name).partition('\n\n')
        first, *lines = head.split('\n')
        old, (new, root) = int(first[len('old '):]), self.parse_checkpoint(note)
        path = [base64.b64decode(line, validate=True) for line in lines]
        if name != f'proofs/{old}-{new}.consistency' or old not in self.checkpoints:
            raise ValueError('it is about other checkpoints')
        if not is_consistent(old, new, path, self.checkpoints[old], root):
            raise ValueError('the newer checkpoint does not extend the older one')

    def check_chain(self):
        sizes = sorted(self.checkpoints)
        for old, new in zip(sizes, sizes[1:]):
            name = f'proofs/{old}-{new}.consistency'
            if name not in self.files.names:
                self.fail(name, 'it is missing')

    def check_proof(self, name, paths):
        head, _, note = self.text(name).partition('\n\n')
        lines = head.split('\n')
        if lines[0] != 'c2sp.org/tlog-proof@v1':
            raise ValueError('not a proof of an entry')
        entry, seq = base64.b64decode(lines[1][len('extra '):], validate=True), int(lines[2][len('index '):])
        path = [base64.b64decode(line, validate=True) for line in lines[3:]]
        size, root = self.parse_checkpoint(note)
        if name != f'proofs/{seq}.tlog-proof' or size != self.newest:
            raise ValueError('it is about another entry')
        if root_by_path(seq, size, leaf_hash(entry), path) != root:
            raise ValueError('the entry is not in the log')
        paths[seq] = (leaf_hash(entry), path)

    def check_entries(self, paths):
        """An entry has a proof, or it lies in a run whose first and last entry have one."""
        run, before, waiting = None, -1, None
        for row in self.lines('entries.ndjson'):
            seq, entry = row['seq'], row['entry'].encode()
            leaf = leaf_hash(entry)
            if row['hash'] != leaf.hex() or seq <= before:
                raise ValueError(f'entry {seq} was changed, or is out of order')
            before = seq
            self.note_entry(seq, {**json.loads(row['entry']), 'hash': row['hash']})
            if seq in paths and paths[seq][0] != leaf:
                raise ValueError(f'entry {seq} is not the one that its proof is about')
            if run is not None and seq == run.next:
                run.add(leaf)
            else:
                self.end_run(run, waiting, paths)
                run, waiting = Run(seq), seq
                run.add(leaf)
        self.end_run(run, waiting, paths)
        for cursor, _ in self.cursors:
            self.check(cursor.part, cursor.expect_not_before, None)
        if 0 in self.singles and self.singles[0]['body']['origin'] != self.vkey[0]:
            raise ValueError('the first entry names another log')

    def end_run(self, run, first, paths):
        if run is None:
            return
        last = run.next - 1
        for seq in (first, last):
            if seq not in paths:
                raise ValueError(f'entry {seq} has no proof')
        known = {}
        for seq in (first, last):
            for found, value in zip(ranges_on_path(seq, self.newest), paths[seq][1]):
                if found[1] <= first or found[0] > last:
                    known[found] = value
        if run.root(self.newest, known) != self.checkpoints[self.newest]:
            raise ValueError(f'entries {first} to {last} are not the ones in the log')

    def note_entry(self, seq, entry):
        kind = entry['type']
        if kind.startswith('consent.') or kind == 'subject.linked':
            self.count += 1
            self.follow(seq, entry)
        elif kind in ('ledger.genesis', 'purpose.defined', 'policy.published', 'banner.published'):
            self.singles[seq] = entry
        elif kind == 'subject.erased':
            self.erasures.add(seq)

    def open_cursor(self, part, rows, work):
        self.cursors.append((Cursor(part, rows), work))

    def follow(self, seq, entry):
        """The opening and the receipt of an entry. A part that failed is not read on."""
        for cursor, work in list(self.cursors):
            if self.check(cursor.part, self.take_row, cursor, work, seq, entry) is None:
                self.cursors.remove((cursor, work))

    @staticmethod
    def take_row(cursor, work, seq, entry):
        row = cursor.take(seq)
        if row is not None:
            work(row, seq, entry)
        return True

    def openings(self):
        for row in self.lines('openings.ndjson'):
            yield 'openings.ndjson', row['seq'], row

    def receipts(self):
        names = self.named('receipts/', '.jsonld')
        for name in sorted(names, key=lambda one: int(re.fullmatch(r'receipts/([0-9]+)\.jsonld', one)[1])):
            for receipt in self.check(name, self.graph_of, name) or []:
                yield name, receipt['proof']['seq'], receipt

    def graph_of(self, name):
        return json.loads(self.text(name))['@graph']

    @staticmethod
    def check_opening(row, seq, entry):
        key, salt = from_base64url(row['key']), from_base64url(row['salt'])
        if commit(key, b'gpd/body/v1', CANONICAL.encode(row['detail']).encode(), salt) != entry['body']:
            raise ValueError(f'it does not open entry {seq}')
        person = row['principalId']
        if person is not None and commit(key, b'gpd/subject/v1', person.encode(), salt) != entry['subject']:
            raise ValueError(f'entry {seq} is not about this person')

    @staticmethod
    def check_receipt(receipt, seq, entry):
        expected = (EVENTS[entry['type']], entry['time'], 'urn:gpd:purpose:' + entry['purpose'], entry['hash'])
        purpose, leaf = receipt['purposes'][0]['@id'], receipt['proof']['hash']
        if (receipt['event_state'], receipt['event_time'], purpose, leaf) != expected:
            raise ValueError(f'entry {seq} says something else')

    def check_tombstones(self):
        for row in self.lines('tombstones.ndjson'):
            seq = row['seq']
            if seq is not None and seq not in self.erasures:
                raise ValueError(f'entry {seq} erases nobody')

    def check_definitions(self, name, kind):
        for row in json.loads(self.text(name)):
            entry = self.singles.get(row['seq'])
            if entry is None or entry['type'] != kind or entry['body'] != row['body']:
                raise ValueError(f'entry {row["seq"]} says something else')
            if kind == 'policy.published':
                text = f'definitions/policy-{row["body"]["version"]}.txt'
                if sha256(self.read(text)).hex() != row['body']['sha256']:
                    raise Failed(text, 'it is not the text that was published')

    def check_banner(self, name):
        entry = self.singles.get(int(os.path.basename(name)[:-len('.json')]))
        if entry is None or sha256(self.read(name)).hex() != entry['body']['texts']:
            raise ValueError('it is not the text that the log has the hash of')


def main(arguments):
    trusted = None
    if '--vkey' in arguments[:-1]:
        at = arguments.index('--vkey')
        trusted = arguments[at + 1]
        arguments = arguments[:at] + arguments[at + 2:]
    if len(arguments) > 1 or any(name.startswith('-') for name in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    path = arguments[0] if arguments else os.path.dirname(os.path.abspath(__file__))
    try:
        files = Folder(path) if os.path.isdir(path) else Archive(path)
    except (OSError, zipfile.BadZipFile) as error:
        print(f'{path}: {error}: nothing was checked', file=sys.stderr)
        return 2
    evidence = Evidence(files, trusted)
    evidence.run()
    for part, why in sorted(evidence.failed.items()):
        print(f'FAILED {part}: {why}')
    if not evidence.failed:
        print(f'Everything holds: {evidence.count} entries about people, '
              f'the log of {evidence.newest} entries, signed by {evidence.vkey[0]}')
    return 1 if evidence.failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
