/** The prompt of docs/coding-agents.md, for the page *Next* with the address and the key of the reader. */
export const agentPrompt = (address: string, publishableKey: string): string =>
  `Integrate gpd into this shop. Read docs/llms.txt of gpd first, then the pages it names; they are also in docs/llms-full.txt as one file.
Publishable key: ${publishableKey}, address of gpd: ${address}. The server finds gpd by GPD_CONSENT_URL and its secret key in GPD_CONSENT_KEY.
1. Put the banner on every page, and gate each script, frame and image that needs consent by data-purpose.
2. Before the server processes for a purpose, ask with the SDK of its language whether that is allowed; no answer is a no.
3. At login join the browser with the account; on the server render by the visitor's state.
4. Take the webhooks subject.erased and decision.erased, verify them by the raw body, and delete our copies.
5. Keep the Content-Security-Policy strict: no unsafe-inline, only our origin and gpd's.
Then prove it in a browser: accept, reject, withdraw, Global Privacy Control, login on a second browser, erase. Say what you could not prove.`;
