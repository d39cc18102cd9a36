import type { Handlers } from '../../http/register.ts';
import type { CaseService } from './case-service.ts';

/** A contest by its case key. The page reads the key from its address's fragment, which no server is sent. */
export function caseRoutes(cases: CaseService): Handlers<'case' | 'caseAnswer'> {
  return {
    case: ({ body: { caseKey } }) => cases.view(caseKey),
    caseAnswer: ({ body: { caseKey, answer } }) => cases.answer(caseKey, answer),
  };
}
