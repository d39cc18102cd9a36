import { doc } from '../browser/page.ts';
import { createSurface, type Surface } from './identify.ts';

// The browser names the script only while it runs for the first time, so it is read now and not in a call.
const { currentScript } = doc;
const scriptUrl = currentScript instanceof HTMLScriptElement && currentScript.src ? currentScript.src : null;

// The banner shares the name: each adds itself and leaves the other.
const page = window as { gpd?: { agent?: Surface } };
page.gpd = (Object.hasOwn(page, 'gpd') && page.gpd) || {};
page.gpd.agent = createSurface(scriptUrl);
