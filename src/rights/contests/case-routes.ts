import type { Handlers } from '../../http/register.ts';
import { classText } from '../dsar/dsar.ts';
import type { CaseService } from './case-service.ts';

/** A contest by its case key. The page reads the key from its address's fragment, which no server is sent. */
export function caseRoutes(cases: CaseService): Handlers<'casePage' | 'case' | 'caseAnswer'> {
  return {
    casePage(_call, response) {
      response.set('cache-control', 'no-store').render('case', { classText });
    },
    case: ({ body: { caseKey } }) => cases.view(caseKey),
    caseAnswer: ({ body: { caseKey, answer } }) => cases.answer(caseKey, answer),
  };
}
