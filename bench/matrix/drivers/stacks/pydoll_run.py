"""pydoll: the protocol of the developer tools, without a driver."""

import asyncio
import json
import os

from pydoll.browser.chromium import Chrome
from pydoll.browser.options import ChromiumOptions


async def main() -> None:
    env = os.environ
    options = ChromiumOptions()
    options.binary_location = env["STACK_CHROMIUM"]
    options.headless = env["STACK_MODE"] == "headless"
    options.add_argument(f"--user-data-dir={env['STACK_PROFILE']}")
    for flag in json.loads(env["STACK_FLAGS"]):
        # It sets these itself, and refuses to be told twice.
        if flag not in ("--no-first-run", "--no-default-browser-check"):
            options.add_argument(flag)
    async with Chrome(options=options) as browser:
        tab = await browser.start()
        await tab.go_to(env["STACK_URL"])
        button = await tab.find(id="press", timeout=25)
        await button.click(humanize=env["STACK_MODE"] == "like a hand")
        await asyncio.sleep(60)


asyncio.run(main())
