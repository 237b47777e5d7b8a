"""`mcp-gateway status`: show the running gateways, their connected hosts, and the state of each upstream."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway._version import __version__
from gateway.cli.command_context import AsJson
from gateway.cli.exit_codes import DONE, FAILED, complain
from gateway.cli.running_gateways import Name, Pid, matching, since
from gateway.cli.terminal import say, say_json, say_table
from gateway.core.fact_words import counted, plain, size_words
from gateway.errors import GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord

_AT_ONCE = 8

Answer = tuple[GatewayRecord, dict[str, Any] | None, str | None]


def status(pid: Pid = None, name: Name = None, as_json: AsJson = False) -> int:
    """Show the running gateways: their uptime, their hosts, and the state and calls of each upstream."""
    try:
        records = matching(pid, name)
    except GatewayError:
        if as_json:
            say_json({"gateways": []})
        raise
    from concurrent.futures import ThreadPoolExecutor  # here, because no other command needs it

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        answers = list(threads.map(_asked, records))
    if as_json:
        say_json({"gateways": [report or {"pid": record.pid, "problem": why} for record, report, why in answers]})
    else:
        for place, (_, report, _) in enumerate(answers):
            if report is not None:
                say("\n" * (place > 0) + _heading(report))
                _show(report)
    silent = [why for _, _, why in answers if why is not None]
    for why in silent:
        complain(why)
    return FAILED if silent else DONE


def _asked(record: GatewayRecord) -> Answer:
    try:
        return record, ask(record, "status"), None
    except GatewayError as error:
        return record, None, str(error)


def _heading(report: Mapping[str, Any]) -> str:
    facts = [
        f"{plain(report['name'], 100)} {report['version']}",
        f"process {report['pid']}",
        f"for {since(report['started'])}",
        ", ".join(report["transports"]) or "not serving yet",
        *([size_words(report["memory_bytes"])] if report["memory_bytes"] else []),
    ]
    return ", ".join(facts)


def _show(report: Mapping[str, Any]) -> None:
    configuration = report["configuration"]
    say(f"  configuration: {report['config'] or 'none (upstreams from the command line)'}")
    for line in (configuration["problem"] or "").splitlines():
        say(f"    not applied: {line}")
    if configuration["restart_needed"]:
        say(f"    from the next start on: {', '.join(configuration['restart_needed'])}")
    say(f"  log: {report['log'] or 'none'}")
    store = report["store"]
    held = f"{size_words(store['bytes'])} of {size_words(store['max_bytes'])} in {counted(store['pieces'], 'piece')}"
    say(f"  store: {plain(store['url'], 200)}, {held}")
    if requests := report.get("requests"):  # missing in the status of an older gateway
        say(f"  requests: {_requests(requests)}")
    if audit := report.get("audit"):  # missing in the status of an older gateway
        problem = f", which cannot be written: {audit['problem']}" if audit["problem"] else ""
        say(f"  audit: {audit['path']}{problem}")
    if recording := report.get("recording"):
        problem = f", nothing more: {recording['problem']}" if recording["problem"] else ""
        size = f"{size_words(recording['bytes'])} of {size_words(recording['max_bytes'])}"
        say(f"  recording: {recording['folder']}, {counted(recording['exchanges'], 'exchange')}, {size}{problem}")
    for worker in report.get("workers") or ():  # missing in the status of an older gateway
        say(f"  worker {_worker(worker)}")
    for replica in report.get("replicas") or ():  # missing in the status of an older gateway
        say(f"  replica {_replica(replica)}")
    _show_hosts(report["hosts"], report.get("attached") or ())  # missing in the status of an older gateway
    _show_waiting(report)
    if report["upstreams"]:
        headings = ("upstream", "state", "for", "requests", "failed", "running", "restarts", "memory")
        say_table(headings, [_row(upstream) for upstream in report["upstreams"]])
    for upstream in report["upstreams"]:  # below the table, because a cause is wider than a column
        _show_upstream(upstream)


def _requests(requests: Mapping[str, Any]) -> str:
    """Say how many run and wait; and why some were refused, if some were."""
    said = f"{requests['running']} of {requests['places']:,} run, {requests['waiting']} wait"
    refused = ", ".join(f"{count:,} {reason}" for reason, count in requests["refused"].items() if count)
    return f"{said}; refused: {plain(refused, 200)}" if refused else said


def _show_hosts(hosts: Sequence[Mapping[str, Any]], attached: Sequence[Mapping[str, Any]]) -> None:
    """Show the hosts, and of those that are attached also the ones that have not asked for anything yet."""
    asking = {host.get("pid") for host in hosts}
    lines = [_host(host) for host in hosts] + [_attached(host) for host in attached if host["pid"] not in asking]
    for line in lines:
        say(f"  host {line}")
    if not attached and not any(host.get("connected", True) for host in hosts):
        say("  no host is connected")
    for host in attached:
        if host["environment"]:
            names = plain(", ".join(host["environment"]), 1_000)
            say(f"    process {host['pid']} was started with other values of {names}: those of the gateway hold")


def _worker(worker: Mapping[str, Any]) -> str:
    """Describe one of several workers."""
    memory = (size_words(worker["memory_bytes"]),) if worker["memory_bytes"] else ()
    facts = (worker["state"], f"process {worker['pid']}", f"for {since(worker['started'])}")
    load = f"{counted(worker['running'], 'request')}, {counted(worker['hosts'], 'host')}"
    said = ", ".join((*facts, *memory, load))
    return f"{worker['number']}: {said}" + (f"; {plain(worker['problem'], 200)}" if worker["problem"] else "")


def _replica(replica: Mapping[str, Any]) -> str:
    """Describe a replica of the cluster."""
    own = ", this one" if replica["own"] else ""
    version = (
        "" if replica["own"] or replica["version"] == __version__ else f", version {plain(replica['version'], 40)}"
    )
    facts = (replica["state"], plain(replica["address"], 200), f"for {since(replica['started'])}")
    return f"{replica['id']}{own}: {', '.join(facts)}{version}"


def _show_upstream(upstream: Mapping[str, Any]) -> None:
    own, *others = upstream.get("logins") or (None,)
    whose = f", for {plain(own['principal'], 100)}" if own and others else ""  # one login alone needs no name
    say(f"  {upstream['name']}{whose}: {_about(upstream)}")
    for one in others:
        about = one["cause"] or one["state"]
        say(f"  {upstream['name']}, for {plain(one['principal'], 100)}: {plain(about, 1_000)}")
    for one in upstream.get("withheld", ()):  # missing in the status of an older gateway
        say(f"  {upstream['name']}: the tool {one['tool']} is withheld: {one['why']}")
    for why in upstream.get("left_out", ()):
        say(f"  {upstream['name']}: {why}")


def _show_waiting(report: Mapping[str, Any]) -> None:
    if waiting := report.get("approvals"):  # missing in the status of an older gateway
        say(f"  {counted(waiting, 'call')} waiting for an approval: mcp-gateway approvals ls")


def _host(host: Mapping[str, Any]) -> str:
    named = plain(f"{host['name'] or 'without a name'} {host['version'] or ''}".strip(), 100)
    profile = f"profile {host['profile']}" if host["profile"] else "asks for a profile that does not exist"
    profile += ", with pages" if host.get("pages") else ""
    profile += "".join(f", toolset {plain(name, 100)}" for name in host.get("toolsets", ()))
    principal = host.get("principal", "local")  # missing in the status of an older gateway
    token = host.get("token")
    which = f", token {plain(token, 100)}" if token not in (None, principal) else ""
    whose = "" if principal == "local" else f" of {plain(principal, 100)}{which}"
    asked = counted(host["requests"], "request")
    process = f", process {host['pid']}" if host.get("pid") is not None else ""
    problem = host.get("problem")  # missing in the status of an older gateway
    nothing = f"; offered nothing: {plain(problem, 1_000)}" if problem else ""
    seen = f"last request {since(host['last_request'])} ago"
    # Over HTTP, few hosts say that they leave. Missing in the status of an older gateway.
    there = f"for {since(host['since'])}, {asked}" if host.get("connected", True) else f"not connected, {asked}"
    return f"{named}{whose}: {host['revision']}, {profile}, {there}, {seen}{process}{nothing}"


def _attached(host: Mapping[str, Any]) -> str:
    """Describe an attached host that has not asked for anything yet."""
    named = plain(f"{host['name'] or 'without a name'} {host['version'] or ''}".strip(), 100)
    profile = f"profile {host['profile']}, " if host["profile"] else ""
    return f"{named}: {profile}for {since(host['since'])}, no requests, process {host['pid']}"


def _row(upstream: Mapping[str, Any]) -> Sequence[str]:
    calls, memory = upstream["calls"], upstream["memory_bytes"]
    return (
        upstream["name"],
        upstream["state"],
        since(upstream["since"]),
        *(str(calls[kind]) for kind in ("total", "failed", "running")),
        str(upstream["restarts"]),
        size_words(memory) if memory else "-",
    )


def _about(upstream: Mapping[str, Any]) -> str:
    """Say why the upstream is not ready, or else its transport and what it has."""
    tokens = upstream.get("list_tokens")  # missing in the status of an older gateway
    costs = f" (about {counted(tokens, 'token')})" if tokens else ""
    has = f"{counted(upstream['tools'], 'tool')}{costs}, sessions: {upstream['sessions']}"
    return upstream["cause"] or f"{upstream['transport']}, {upstream['revision'] or '-'}, {has}"
