"""SeleniumBase in its CDP mode."""

import json
import os
import time

from seleniumbase import sb_cdp

env = os.environ
sb = sb_cdp.Chrome(
    env["STACK_URL"],
    headless=env["STACK_MODE"] == "headless",
    browser_executable_path=env["STACK_CHROMIUM"],
    user_data_dir=env["STACK_PROFILE"],
    browser_args=json.loads(env["STACK_FLAGS"]),
    sandbox=os.getuid() != 0,
)
sb.click("#press", timeout=25)
time.sleep(60)
