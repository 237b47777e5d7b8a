"""What the Python programs of this folder share: see `tests/serving/model_proxy/test_matrix.py`."""

import asyncio
import json
import sys


def run(attempt):
    """Do the job's cases one by one, and print what came of each: the model's last words, or what was raised."""

    async def main():
        outcomes = {}
        for case in json.load(sys.stdin)["cases"]:
            try:
                outcomes[case["id"]] = {"answer": await attempt(case)}
            except Exception as error:  # whatever the client raises, when its model API refuses
                outcomes[case["id"]] = {"raised": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(outcomes))

    asyncio.run(main())
