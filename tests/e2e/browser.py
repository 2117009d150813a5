# SPDX-License-Identifier: Apache-2.0
"""A Chromium without windows, driven over DevTools' pipe with the standard library alone.

    with Browser(width=1600) as browser:
        browser.open("page.html")
        browser.run("document.title")
        browser.hover("canvas", 0.5, 0.5)
        browser.errors   # what the console has said that is wrong, and exceptions
        browser.asked    # addresses beyond files that the page has asked for
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

LIMIT = 60  # seconds for an answer; anything longer counts as hanging
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def program():
    """Path of a Chromium, or None."""
    return os.environ.get("PIPEWRIGHT_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, width=1600, height=1000, dark=False, scripts=True):
        self.size, self.dark, self.scripts = (width, height), dark, scripts
        self.errors, self.asked = [], []
        self._answers, self._number, self._text, self._loaded = {}, 0, b"", False

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="pipewright-chromium-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}",
        ]

        def use_pipes():  # DevTools reads descriptor 3 and writes 4
            reader, writer = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reader, 3)
            os.dup2(writer, 4)

        self.process = subprocess.Popen(
            [program(), *flags, "about:blank"],
            preexec_fn=use_pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        pages = self._tell("Target.getTargets", session=None)["targetInfos"]
        page = next(each for each in pages if each["type"] == "page")
        self.session = self._tell(
            "Target.attachToTarget", session=None, targetId=page["targetId"], flatten=True
        )["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self._tell(f"{part}.enable")
        width, height = self.size
        self._tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self.media(dark=self.dark)
        self._tell("Emulation.setScriptExecutionDisabled", value=not self.scripts)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _heed(self, message):
        method, facts = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = facts["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.errors.append(facts["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.errors.append(str([each.get("value") for each in facts["args"]]))
        elif method == "Network.requestWillBeSent":
            address = facts["request"]["url"]
            if not address.startswith(("file:", "data:", "about:")):
                self.asked.append(address)

    def _hear(self):
        """Takes what the browser has said so far, waiting for something."""
        if not select.select([self._read], [], [], LIMIT)[0]:
            raise AssertionError("the browser does not answer")
        said = os.read(self._read, 1 << 20)
        if not said:
            raise AssertionError("the browser has ended")
        *messages, self._text = (self._text + said).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self._heed(message)

    def _tell(self, method, session="own", **facts):
        self._number += 1
        message = {"id": self._number, "method": method, "params": facts}
        if session is not None:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while message["id"] not in self._answers:
            self._hear()
        answer = self._answers.pop(message["id"])
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, file):
        self._loaded = False
        self._tell("Page.navigate", url=Path(file).resolve().as_uri())
        while not self._loaded:
            self._hear()

    def run(self, expression):
        """The value of an expression in the page."""
        answer = self._tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition):
        """Until the expression is true; the page is asked again and again."""
        end = time.monotonic() + LIMIT
        while not self.run(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {condition}")

    def media(self, dark=False, printed=False):
        self._tell(
            "Emulation.setEmulatedMedia",
            media="print" if printed else "",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def hover(self, selector, x=0.5, y=0.5):
        """Moves the pointer onto the first element that the selector finds: to these shares of its size."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
        )
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
        self._tell("Input.dispatchMouseEvent", type="mouseMoved", x=at["x"] + 1, y=at["y"] + 1)
        self._tell("Input.dispatchMouseEvent", type="mouseMoved", **at)
        return at

    def press(self, key):
        text = key if len(key) == 1 else ""
        self._tell("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self._tell("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, file, whole=True):
        clip = {}
        if whole:
            size = self._tell("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        picture = self._tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        Path(file).write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, file):
        Path(file).write_bytes(base64.b64decode(self._tell("Page.printToPDF")["data"]))
