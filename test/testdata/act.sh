# Plays every role in the scripts: what a step or a gate does there is in $E2E_WORK/acts/ID; where nothing is, a reviewer
# passes the work and a step is done. Each launch leaves a line in $E2E_WORK/launches.
set -e

# hold waits for the file $E2E_WORK/$1, and leaves at-$1 to be waited for.
hold() {
	n=0
	: >"$E2E_WORK/at-$1"
	until [ -e "$E2E_WORK/$1" ]; do
		[ $((n += 1)) -lt 800 ] && [ -d "$E2E_WORK" ] || exit 99
		sleep 0.05
	done
}

# say writes the step's signal, whole.
say() {
	printf '%s\n' "$1" >"$(dirname "$SLUICE_SIGNAL")/.$$"
	mv "$(dirname "$SLUICE_SIGNAL")/.$$" "$SLUICE_SIGNAL"
}

who=${SLUICE_GATE:-$SLUICE_STEP}
echo "$who.$SLUICE_ATTEMPT" >>"$E2E_WORK/launches"
if [ -f "$E2E_WORK/acts/$who" ]; then
	. "$E2E_WORK/acts/$who"
elif [ -n "$SLUICE_GATE" ]; then
	echo '{"verdict": "pass"}'
elif [ -n "$SLUICE_SIGNAL" ]; then
	say '{"status": "done"}'
fi
