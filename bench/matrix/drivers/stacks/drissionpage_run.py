"""DrissionPage: the protocol of the developer tools, without a driver."""

import json
import os
import socket
import time

from DrissionPage import Chromium, ChromiumOptions

env = os.environ
with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
options = ChromiumOptions().set_browser_path(env["STACK_CHROMIUM"]).set_local_port(port)
options.set_user_data_path(env["STACK_PROFILE"])
options.headless(env["STACK_MODE"] == "headless")
for flag in json.loads(env["STACK_FLAGS"]):
    options.set_argument(flag)
tab = Chromium(options).latest_tab
tab.get(env["STACK_URL"])
tab.ele("#press", timeout=25).click()
time.sleep(60)
