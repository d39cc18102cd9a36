"""Helium over Selenium: buttons by their words."""

import json
import os
import time

from helium import Button, click, start_chrome, wait_until
from selenium.webdriver import ChromeOptions

env = os.environ
options = ChromeOptions()
options.binary_location = env["STACK_CHROMIUM"]
for flag in [*json.loads(env["STACK_FLAGS"]), f"--user-data-dir={env['STACK_PROFILE']}"]:
    options.add_argument(flag)
start_chrome(env["STACK_URL"], headless=env["STACK_MODE"] == "headless", options=options)
wait_until(Button("Press").exists, timeout_secs=25)
click("Press")
time.sleep(60)
