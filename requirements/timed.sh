# Run a command: `sh timed.sh COMMAND ...`. On a terminal, show how many seconds it has taken so far, and wipe it out.

[ -t 2 ] || exec "$@"
(
  seconds=0
  while sleep 1; do
    seconds=$((seconds + 1))
    printf '\r  %s s' "$seconds" >&2
  done
) &
clock=$!
trap 'kill "$clock" 2>/dev/null' EXIT
"$@"
code=$?
kill "$clock" 2>/dev/null
wait "$clock" 2>/dev/null
printf '\r         \r' >&2
exit "$code"
