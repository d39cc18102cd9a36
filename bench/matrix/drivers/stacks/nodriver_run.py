"""nodriver: the successor of undetected-chromedriver."""

import asyncio
import json
import os

import nodriver


async def main() -> None:
    env = os.environ
    browser = await nodriver.start(
        browser_executable_path=env["STACK_CHROMIUM"],
        user_data_dir=env["STACK_PROFILE"],
        browser_args=json.loads(env["STACK_FLAGS"]),
        headless=env["STACK_MODE"] == "headless",
        sandbox=os.getuid() != 0,
    )
    tab = await browser.get(env["STACK_URL"])
    button = await tab.select("#press", timeout=25)
    await (button.click() if env["STACK_MODE"] == "by script" else button.mouse_click())
    await asyncio.sleep(60)


nodriver.loop().run_until_complete(main())
