"""A stand-in for `npx -y NAME`: it installs into a folder, for as long as a test likes, and then starts the server.

The folder is $FAKE_CACHE. What is there decides:

    NAME.go         may be installed now; until then it works on it, with a child that uses CPU
    NAME.silent     it does nothing while it installs, and prints nothing
    NAME.mute       the server that is installed never answers
    NAME.lock       it is being installed; if that was cut short, every later start fails, as in npm's own cache
    NAME.installed  it is installed, and is started at once
    log             what happened, a line each: `begins NAME`, `installed NAME`, `asked NAME`, `rolled back NAME`

On SIGTERM it takes back what it has half done, as npm does, which takes longer than any server is given to end
($FAKE_ROLLING_BACK seconds); a
second SIGTERM cuts that short, as it does with npm.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(os.environ["FAKE_CACHE"])
NAME = next(word for word in sys.argv[1:] if not word.startswith("-"))
SERVER = Path(__file__).parent / "raw_stdio.py"
ROLLING_BACK = float(os.environ.get("FAKE_ROLLING_BACK", "2"))
WORK = """
import time
while True:
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    time.sleep(0.05)
"""


def file(ending: str) -> Path:
    return CACHE / f"{NAME}.{ending}"


def log(line: str) -> None:
    with (CACHE / "log").open("a") as log_file:
        log_file.write(f"{line} {NAME}\n")


def roll_back(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    log("asked")
    time.sleep(ROLLING_BACK)
    file("lock").unlink()
    log("rolled back")
    os._exit(143)


def install() -> None:
    try:
        file("lock").touch(exist_ok=False)
    except FileExistsError:
        sys.exit("npm error ENOTEMPTY: directory not empty")
    signal.signal(signal.SIGTERM, roll_back)
    log("begins")
    work = None if file("silent").exists() else subprocess.Popen([sys.executable, "-c", WORK])
    while not file("go").exists():
        time.sleep(0.02)
    if work is not None:
        work.kill()
        work.wait()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    file("installed").touch()
    file("lock").unlink()
    log("installed")


if not file("installed").exists():
    install()
server = "import time; time.sleep(600)" if file("mute").exists() else None
sys.exit(subprocess.call([sys.executable, *(("-c", server) if server else (str(SERVER),))]))
