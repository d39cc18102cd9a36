/** What the turned house still owes to its rules: each line goes with its cause, and none is added. */

export const OPEN_FAULTS: readonly string[] = [
  'src/consent/service.ts (consent) imports randomBytes: a Random is handed in',
  'src/console/id-token.ts (console) imports randomBytes: a Random is handed in',
  'src/console/jobs-service.ts (console) imports randomBytes: a Random is handed in',
  'src/console/sign-in-service.ts (console) imports randomBytes: a Random is handed in',
  'src/rights/contests/contest-text-of.ts (rights) imports randomBytes: a Random is handed in',
  'src/rights/contests/service.ts (rights) imports randomBytes: a Random is handed in',
  'src/rights/dsar/envelope.ts (rights) imports randomBytes: a Random is handed in',
  'src/rights/erase/service.ts (rights) imports randomBytes: a Random is handed in',
];

export const OPEN_FUNCTIONS: readonly string[] = [
  'src/banner/controller.ts makeController',
  'src/banner/embed.ts start',
  'src/banner/view/view.ts makeView',
  'src/console/case-pages.ts casePages',
  'src/console/case-pages.ts makeCaseDesk',
  'src/console/cases-service.ts makeCasePort',
  'src/console/holds-service.ts makeHoldService',
  'src/console/insight-pages.ts insightPages',
  'src/console/insight-service.ts makeInsightPort',
  'src/console/jobs-service.ts makeJobs',
  'src/console/login-pages.ts loginPages',
  'src/console/session-guard.ts makeDesk',
  'src/console/sign-in-service.ts makeLoginPort',
  'src/console/subject-pages.ts subjectPages',
  'src/console/subjects-service.ts makeSubjectPort',
  'src/rights/contests/service.ts makeContestService',
  'src/rights/dsar/service.ts makeDsarService',
];
