import { startApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import { prepareDemo } from '../../../src/demo/demo-service.ts';
import { createMailbox } from '../../../src/demo/mailbox.ts';
import { createLogger } from '../../../src/ops/log-service.ts';

/** The demo on a free port, in this process. @param visits a few decisions of the past, unless a test counts them */
export async function startDemoApp(visits = 20) {
  const started = await startUnfilled(visits);
  await started.demo.fill();
  return started;
}

/** The demo, which answers little until its `fill` has run. */
export async function startUnfilled(visits = 20) {
  const mailbox = createMailbox();
  const options = {
    log: createLogger('silent'),
    onFatal: (error: Error) => {
      throw error;
    },
    sendMail: mailbox.send,
    intervals: { webhooks: 50 },
  };
  const demo = await prepareDemo(loadConfig({ environment: { GPD_PORT: '0' } }), {
    mailbox,
    visits,
    verifyLog: () => Promise.resolve(''),
  });
  const { clock, admit, routers } = demo;
  const app = await startApp(demo.config, { ...options, clock, admit, routers });
  return { app, demo, stop: () => app.stop(1000) };
}
