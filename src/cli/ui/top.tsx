import { Box, render, Text, useInput } from 'ink';
import { alignColumns } from '../io-service.ts';
import { type TopView, topLines } from '../top/view.ts';

/** `gpd top` on a terminal: redrawn in place, press q to quit. */

const ROUTES = ['ROUTE', 'A SECOND', 'P50 MS', 'P99 MS'] as const;
const GROUPS = ['GROUP', 'ITEMS EACH', 'WAITING'] as const;

export function topText(view: TopView): string[] {
  const { facts, routes, groups, hint } = topLines(view);
  return [
    ...alignColumns(facts),
    ...(hint === null ? [] : ['', hint]),
    ...(routes.length > 0 ? ['', ...alignColumns([ROUTES, ...routes])] : []),
    ...(groups.length > 0 ? ['', ...alignColumns([GROUPS, ...groups])] : []),
  ];
}

function Top({ view, title, onQuit }: { view: TopView | null; title: string; onQuit: () => void }) {
  useInput((input) => {
    if (input.startsWith('q')) onQuit();
  });
  const lines = view ? topText(view) : ['reading …'];
  return (
    <Box flexDirection="column">
      <Text bold>{title}</Text>
      <Text>{lines.join('\n')}</Text>
      <Text dimColor>press q to quit</Text>
    </Box>
  );
}

/** @returns `quit`, which resolves when the person presses q */
export function drawTop(title: string) {
  let quitNow = (): void => {};
  const quit = new Promise<void>((resolve) => {
    quitNow = resolve;
  });
  const element = (view: TopView | null) => <Top view={view} title={title} onQuit={quitNow} />;
  const drawn = render(element(null), { patchConsole: false });
  void drawn.waitUntilExit().then(quitNow, quitNow);
  return { update: (view: TopView) => drawn.rerender(element(view)), end: () => drawn.unmount(), quit };
}
