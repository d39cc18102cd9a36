import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';
import { expectFollowed, follow, missing, PROJECT } from './follow.ts';

/** A later version of what is here: its branch `next` has one migration more. */
const NEXT_MIGRATION = '20991231000000_next.js';

function createOrigin(): string {
  const origin = tempDir('origin');
  const shell = `set -euo pipefail
    cd "$PROJECT" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$ORIGIN" --
    cd "$ORIGIN"
    git init --quiet -b main && git add -A
    commit() { git -c user.name=t -c user.email=t@t.example commit --quiet -m "$1"; }
    commit installed
    git checkout --quiet -b next
    cat > migrations/${NEXT_MIGRATION} <<'END'
export const up = (knex) => knex.schema.createTable('next', (table) => table.integer('id').primary());
export const down = (knex) => knex.schema.dropTable('next');
END
    git add -A && commit next
    git checkout --quiet main`;
  execFileSync('bash', ['-c', shell], { env: { ...process.env, PROJECT, ORIGIN: origin } });
  return origin;
}

// A file of its own: it installs every package, and the other stories go on meanwhile.
describeWithTool('runbooks', missing(), () => {
  it('a new version, and back', { timeout: 1_500_000 }, async () => {
    const origin = createOrigin();
    const followed = await follow(
      [
        ['first-day'],
        [
          'upgrade',
          {
            before: `visit shop | grep -o '"reason":"ok"'
              git -C "$ORIGIN" checkout --quiet next`,
            after: {
              2: 'visit shop | grep -o \'"reason":"ok"\'',
              3: `gpd tenants add since-the-upgrade --controller Shop --contact privacy@shop.example
                test -d /opt/gpd.previous && test -f /opt/gpd/migrations/${NEXT_MIGRATION}`,
              4: `test ! -e /opt/gpd/migrations/${NEXT_MIGRATION}
                test "$(gpd tenants list --json | grep -c since-the-upgrade)" = 0
                gpd doctor
                visit shop | grep -o '"reason":"ok"'`,
            },
          },
        ],
      ],
      { ORIGIN: origin },
    );
    expectFollowed(followed);
    expect(followed.output).toContain(NEXT_MIGRATION.replace('.js', ''));
    expect(followed.output.match(/"reason":"ok"/g)).toHaveLength(3);
    expect(followed.output.match(/checks: 0 fail/g)).toHaveLength(4);
  });
});
