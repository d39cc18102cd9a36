"""zendriver: a fork of nodriver."""

import asyncio
import json
import os

import zendriver


async def main() -> None:
    env = os.environ
    browser = await zendriver.start(
        browser_executable_path=env["STACK_CHROMIUM"],
        user_data_dir=env["STACK_PROFILE"],
        browser_args=json.loads(env["STACK_FLAGS"]),
        headless=env["STACK_MODE"] == "headless",
        sandbox=os.getuid() != 0,
    )
    tab = await browser.get(env["STACK_URL"])
    button = await tab.select("#press", timeout=25)
    await button.click()
    await asyncio.sleep(60)


asyncio.run(main())
