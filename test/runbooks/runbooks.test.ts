import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { startIdp } from '../support/oidc.ts';
import { describeWithTool } from '../support/tools.ts';
import { expectFollowed, follow, missing } from './follow.ts';

const TIMEOUT = { timeout: 240_000 };

describeWithTool('runbooks', missing(), () => {
  it('first day, then a restore of what was lost', TIMEOUT, async () => {
    const followed = await follow([
      [
        'first-day',
        {
          after: {
            3: 'test "$(stat -c %U:%a /var/lib/gpd/backups/gpd-*.backup)" = gpd:600',
          },
        },
      ],
      [
        'restore',
        {
          before: `gpd tenants add lost-after-the-backup
            systemctl stop gpd; head -c 100000 /dev/urandom > /var/lib/gpd/gpd.db`,
          after: {
            3: 'test "$(gpd tenants list --json | grep -c lost-after)" = 0; test "$(stat -c %U /var/lib/gpd/gpd.db)" = gpd',
          },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/is whole and would be restored/);
    expect(followed.output).toMatch(/fail +database\.reachable/);
    expect(followed.output).toMatch(/The log is whole/);
    expect(followed.output.match(/checks: 0 fail/g)).toHaveLength(2);
  });

  it('a key is in the wrong hands', TIMEOUT, async () => {
    const followed = await follow([
      ['first-day'],
      [
        'key-compromise',
        {
          before: 'cp /var/lib/gpd/master.key /root/old-master-key',
          after: { 4: '! cmp -s /var/lib/gpd/master.key /root/old-master-key' },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/revoked/i);
    expect(followed.output).toMatch(/shop generation 1: destroyed/);
  });

  it('the master key apart from the data', TIMEOUT, async () => {
    const asService = 'runuser -u gpd -- env GPD_DATA_DIR=/var/lib/gpd node /opt/gpd/bin/gpd';
    const followed = await follow([
      ['first-day'],
      [
        'master-key',
        {
          after: {
            1: `test "$(stat -c %U:%a /etc/gpd/master-key)" = root:600
              test ! -e /var/lib/gpd/master.key && test -e /etc/gpd/master-key.old
              gpd tenants list && visit shop
              gpd backup /var/lib/gpd/backups/apart.backup
              gpd restore /var/lib/gpd/backups/apart.backup --dry-run
              code=0; ${asService} tenants list || code=$?; test "$code" = 78
              ${asService} doctor --all | grep -F 'master-key.present' | tee /root/as-service
              grep -qE '^ *pass' /root/as-service`,
            2: 'test ! -e /etc/gpd/master-key.old',
            3: `grep -qF fingerprint <(gpd master-key escrow)
              curl -fsS "http://127.0.0.1:$PORT/readyz" && visit shop`,
          },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output.match(/"reason":"ok"/g)).toHaveLength(2);
    expect(followed.output).toMatch(
      /master key is held by the unit \(LoadCredential=master-key:\/etc\/gpd\/master-key\)/,
    );
    expect(followed.output).not.toContain('gpd init');
    expect(followed.output.match(/held by the unit \(\/etc\/gpd\/master-key\)/g)).toHaveLength(2);
    expect(followed.output.match(/checks: 0 fail/g)).toHaveLength(2);
  });

  it('the disk is full', TIMEOUT, async () => {
    const full = 'dd if=/dev/zero of=/var/lib/gpd/backups/filler bs=1M 2> /dev/null';
    const followed = await follow([
      ['first-day'],
      [
        'disk-full',
        {
          before: `${full} && exit 90
            code=0; gpd tenants add no-room || code=$?; echo "a write ended with $code"; test "$code" != 0
            curl -fs "http://127.0.0.1:$PORT/healthz"`,
          after: {
            2: 'rm /var/lib/gpd/backups/filler',
          },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/a write ended with 75/);
    expect(followed.output).toMatch(/^active$/m);
  });

  it('the identity provider does not answer', TIMEOUT, async () => {
    // Answers as a provider does whose front is up and whose back is not.
    const provider = createServer((_request, response) => response.writeHead(502).end());
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const settings = `printf 'oidc_issuer = "${issuer}"\\noidc_audience = "gpd"\\n' >> /etc/gpd/gpd.toml`;
    const followed = await follow([['first-day'], ['idp-down', { before: settings }]]);
    provider.close();
    expectFollowed(followed);
    expect(followed.output).toMatch(/fail +oidc\.issuer +discovery document: it answered 502/);
  });

  it('an erasure is incomplete', TIMEOUT, async () => {
    const reader = `node -e 'const { Database } = require("/opt/gpd/node_modules/sqlite3");
      const db = new Database("/var/lib/gpd/gpd.db");
      db.serialize(() => { db.run("BEGIN"); db.all("SELECT * FROM decisions", () => console.log("reading")); });
      setInterval(() => {}, 1e6)' forgotten-shell > /root/reader.log 2>&1 &
      reader=$!
      until grep -q reading /root/reader.log; do sleep 0.1; done`;
    const followed = await follow([
      ['first-day'],
      [
        'erasure-incomplete',
        {
          before: `request=$(visit shop | member requestId)
            ${reader}
            code=0; gpd erase --tenant shop --request "$request" --yes || code=$?; test "$code" = 5`,
          after: { 3: 'kill "$reader"; wait "$reader" || true' },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/^exit 5$/m);
    expect(followed.output).toMatch(/Another program has the database open/);
    expect(followed.output).toMatch(/^ *\d+ +root .*forgotten-shell/m);
    expect(followed.output).toMatch(/(?:1 of 1 erasures are complete now|no erasure is left to finish)/);
    expect(followed.output.split('== erasure-incomplete 4')[1]).not.toMatch(/(?:pending|failed) +\d/);
  });

  it('a contest is overdue', TIMEOUT, async () => {
    const idp = await startIdp();
    // Hands out what a person's sign-in would give them.
    const door = createServer((request, response) => {
      const visitor = new URL(request.url ?? '', 'http://door').searchParams.get('visitor') ?? '';
      const claims = { gpd_role: 'subject', gpd_tenant: 'shop', gpd_visitor: visitor };
      void idp.token(claims).then((token) => response.end(token));
    });
    await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
    const tokens = `http://127.0.0.1:${(door.address() as AddressInfo).port}/`;
    const settings = `oidc_issuer = "${idp.issuer}"\\noidc_audience = "${idp.audience}"`;
    const followed = await follow([
      ['first-day'],
      [
        'contest-overdue',
        {
          before: `systemctl stop gpd
            printf '${settings}\\n' >> /etc/gpd/gpd.toml
            systemctl start gpd
            answer=$(visit shop)
            token=$(curl -sS "${tokens}?visitor=$(member visitorId <<< "$answer")")
            curl -sS --fail-with-body -H "authorization: Bearer $token" -H 'content-type: application/json' \
              -d "{\\"requestId\\":\\"$(member requestId <<< "$answer")\\",\\"statement\\":\\"I am a person.\\"}" \
              "http://127.0.0.1:$PORT/privacy/contest"
            sql 'UPDATE contests SET due_at = filed_at - 1'
            code=0; gpd doctor > /dev/null || code=$?; test "$code" = 1`,
          after: { 4: 'visit shop | grep -o \'"class":"human"\'' },
        },
      ],
    ]);
    door.close();
    await idp.stop();
    expectFollowed(followed);
    expect(followed.output).toMatch(/fail +rights\.contests/);
    expect(followed.output).toContain('overdue by');
    expect(followed.output).toContain('I am a person.');
    expect(followed.output).toMatch(/is resolved: overturned/);
    expect(followed.output).toContain('"class":"human"');
  });

  it('a tenant leaves', TIMEOUT, async () => {
    const followed = await follow([
      ['first-day'],
      [
        'offboarding',
        {
          before: `gpd tenants add blog --origin https://blog.example
            gpd apikeys create blog --scope secret --name backend
            gpd consent grant blog reader-1 device-identification
            for _ in $(seq 60); do visit blog | tee /root/answer | grep -q '"reason":"ok"' && break; sleep 0.1; done
            request=$(member requestId < /root/answer)
            openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=blog -keyout /root/tenant.key -out /root/tenant.pem 2> /dev/null`,
          after: {
            4: 'grep -q "$request" /var/lib/gpd/leaving/blog/decisions.ndjson',
            6: `openssl cms -decrypt -binary -inform DER -in /root/leaving.p7m -inkey /root/tenant.key -out /root/back.tar
              tar -tf /root/back.tar leaving/blog/checkpoint leaving/blog/vkey leaving/verify.py`,
            7: `test "$(gpd tenants list --json | grep -c '"kid":"blog"')" = 0
              gpd backup /var/lib/gpd/backups/after.backup
              ! grep -rqaF "$request" /var/lib/gpd
              visit shop | grep -o '"reason":"ok"'`,
          },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/The log is whole/);
    expect(followed.output).toMatch(/tenant blog is removed; its data is in/);
    expect(followed.output).toMatch(/^OK log of \d+ entries, root /m);
    expect(followed.output).toContain('"reason":"ok"');
  });
});
