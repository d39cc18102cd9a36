"""botasaurus-driver, which finds the browser itself."""

import json
import os
import time

from botasaurus_driver import Driver

env = os.environ
driver = Driver(
    headless=env["STACK_MODE"] == "headless",
    arguments=[*json.loads(env["STACK_FLAGS"]), f"--user-data-dir={env['STACK_PROFILE']}"],
)
driver.get(env["STACK_URL"])
driver.click("#press", wait=25)
time.sleep(60)
