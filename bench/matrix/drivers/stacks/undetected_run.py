"""undetected-chromedriver, with a copy of the installed driver, which it patches."""

import json
import os
import shutil
import time

import undetected_chromedriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

env = os.environ
driver_path = shutil.copy(shutil.which("chromedriver"), os.path.join(os.path.dirname(env["STACK_PROFILE"]), "uc_driver"))
options = undetected_chromedriver.ChromeOptions()
for flag in json.loads(env["STACK_FLAGS"]):
    options.add_argument(flag)
driver = undetected_chromedriver.Chrome(
    options=options,
    user_data_dir=env["STACK_PROFILE"],
    driver_executable_path=driver_path,
    browser_executable_path=env["STACK_CHROMIUM"],
    headless=env["STACK_MODE"] == "headless",
    no_sandbox=os.getuid() == 0,
    use_subprocess=True,
)
driver.get(env["STACK_URL"])
WebDriverWait(driver, 25).until(lambda d: d.find_element(By.ID, "press")).click()
time.sleep(60)
