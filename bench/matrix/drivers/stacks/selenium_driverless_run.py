"""selenium-driverless: Selenium's methods over the protocol of the developer tools."""

import asyncio
import json
import os

from selenium_driverless import webdriver
from selenium_driverless.types.by import By


async def main() -> None:
    env = os.environ
    options = webdriver.ChromeOptions()
    options.binary_location = env["STACK_CHROMIUM"]
    options.user_data_dir = env["STACK_PROFILE"]
    options.headless = env["STACK_MODE"] == "headless"
    for flag in json.loads(env["STACK_FLAGS"]):
        options.add_argument(flag)
    async with webdriver.Chrome(options=options) as driver:
        await driver.get(env["STACK_URL"])
        button = await driver.find_element(By.ID, "press", timeout=25)
        await button.click()
        await asyncio.sleep(60)


asyncio.run(main())
