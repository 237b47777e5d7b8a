"""The demo: real hosts' ways of reading results, simulated, in front of real servers, over real transports.

It starts the bundled example upstreams and the gateway as processes of their own, connects as each host does, calls
the same tools directly and through the gateway, and shows side by side what the model of each host gets.
"""

from pathlib import Path

DEFAULT_REPORT = Path("demo-report.html")


def run_demo(report: Path = DEFAULT_REPORT, *, json_output: bool = False) -> int:
    """Run the demo, print its table (or JSON) on stdout and write the HTML file `report`. Returns the exit code.

    0: through the gateway, every host sees every image that it can show, and no base64 as text. 1: something is not
    so, or could not be run; what it is stands on stderr and in the report. 130: interrupted.
    """
    # Imported here so that a command line which only offers the demo does not pay for an MCP client.
    from gateway.cli.demo.demo_run import run_demo

    return run_demo(report, json_output=json_output)
