import type { Router } from 'express';
import type { StaffRole } from '../auth/console-session.ts';
import type { Context } from './context.ts';
import { type Posted, type Visit, withForm, withSession } from './session-guard.ts';

type Answers<Asked> = Readonly<
  Record<string, readonly [role: StaffRole, answer: (context: Context, asked: Asked) => unknown]>
>;

/** Pages and forms of one group by their paths: who may, and what answers. */
export interface PageTable {
  readonly pages?: Answers<Visit>;
  readonly forms?: Answers<Posted>;
}

export function register(router: Router, context: Context, { pages = {}, forms = {} }: PageTable): void {
  for (const [path, [role, show]] of Object.entries(pages))
    router.get(
      path,
      withSession(context, role, (visit) => show(context, visit)),
    );
  for (const [path, [role, act]] of Object.entries(forms))
    router.post(
      path,
      withForm(context, role, (posted) => act(context, posted)),
    );
}
