"""The demo: simulated hosts, which read results as the real ones do, with real servers over real transports.

It starts the bundled example upstreams and the gateway as processes, connects as each host does, calls the same tools
directly and through the gateway, and shows side by side what each host's model gets.
"""

from pathlib import Path

DEFAULT_REPORT = Path("demo-report.html")


def run_demo(report: Path = DEFAULT_REPORT, *, json_output: bool = False) -> int:
    """Run the demo, print its table (or JSON) to stdout, write the HTML file `report`, and return the exit code.

    0: through the gateway, every host sees every image that it can show, and no base64 as text. 1: this is not the
    case, or something could not be run; stderr and the report have the details. 130: interrupted.
    """
    # Imported here so that other commands do not load an MCP client.
    from gateway.cli.demo.demo_run import run_demo

    return run_demo(report, json_output=json_output)
