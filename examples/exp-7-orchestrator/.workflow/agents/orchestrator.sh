# Stands in for an orchestrating agent: it speaks to `sluice mcp` as one would, a JSON-RPC message a line, and has each
# step done by the script of its role, as an agent would by a subagent.
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/to" "$dir/from"
sluice mcp <"$dir/to" >"$dir/from" &
exec 3>"$dir/to" 4<"$dir/from"

id=0
ask() { # METHOD PARAMS: the answer's line is $reply
	id=$((id + 1))
	echo "{\"jsonrpc\": \"2.0\", \"id\": $id, \"method\": \"$1\", \"params\": $2}" >&3
	while read -r reply <&4; do
		case $reply in *"\"id\":$id,"*) return ;; esac
	done
	echo "sluice mcp is gone" >&2
	exit 1
}
tool() { ask tools/call "{\"name\": \"$1\", \"arguments\": $2}"; }
field() { # NAME: the first of that name in the answer
	printf '%s\n' "$reply" | sed 's/.*"structuredContent"://' | grep -o "\"$1\":\"\{0,1\}[^\",}]*" | head -n 1 | sed 's/^[^:]*:"\{0,1\}//'
}

ask initialize '{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "orchestrator.sh", "version": "1"}}'
echo '{"jsonrpc": "2.0", "method": "notifications/initialized"}' >&3
while :; do
	tool next '{"claim": true, "wait_seconds": 60}'
	case $reply in *'"structuredContent":{"offer":{'*) ;; *) break ;; esac
	run=$(field run) step=$(field step) attempt=$(field attempt) role=$(field role)
	sh ".workflow/agents/$role.sh" ".workflow/runs/$run/$step.$attempt/prompt.md"
	tool signal "{\"run\": \"$run\", \"step\": \"$step\", \"attempt\": $attempt, \"status\": \"done\", \"summary\": \"$role.sh did it\"}"
	tool evaluate "{\"run\": \"$run\", \"step\": \"$step\", \"attempt\": $attempt, \"wait_seconds\": 60}"
	echo "$step, attempt $attempt: $(field outcome)"
done
exec 3>&-
wait
