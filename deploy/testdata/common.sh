# What the scripts share that run inside the machine of the test, as root. They print a line
# "ok NAME" or "not NAME: why" for each thing they show; the test reads them.
exec > "/out/$BOOT.log" 2>&1
export LC_ALL=C
ok() { echo "ok $*"; }
not() { echo "not $*"; }
# is NAME COMMAND…: the command succeeds
is() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$name"; else not "$name: $* gave $?: $out"; fi
}
# same NAME WANT GOT
same() { if [ "$2" = "$3" ]; then ok "$1"; else not "$1: want '$2', got '$3'"; fi; }
# until COMMAND…: waits for it for up to half a minute
until_() {
	local i
	for ((i = 0; i < 300; i++)); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	return 1
}
# soon NAME COMMAND…: it succeeds in the end
soon() {
	local name=$1
	shift
	if until_ "$@"; then ok "$name"; else not "$name: never: $*"; fi
}
says() {
	local want=$1
	shift
	"$@" 2>&1 | grep -q "$want"
}
lines() { wc -l 2>/dev/null < "$1" || echo 0; }
has() { [ "$(lines "$1")" -ge "$2" ]; }
# more FILE: it grows
grows() {
	local n
	n=$(lines "$1")
	until_ has "$1" $((n + 1))
}
# A bare environment, as that of cron: no XDG_RUNTIME_DIR, no bus.
ann() { runuser -u ann -- env -i HOME=/home/ann USER=ann LOGNAME=ann PATH="/home/ann/my agents/50%:/usr/bin:/bin" "$@"; }
manager() { runuser -u ann -- env XDG_RUNTIME_DIR=/run/user/1000 systemctl --user "$@"; }
box() { runuser -u sluice -- env -i HOME=/var/lib/sluice USER=sluice PATH=/usr/local/bin:/usr/bin:/bin "$@"; }
# procs GROUP: how many live in a cgroup and below
procs() { find "/sys/fs/cgroup$1" -name cgroup.procs -exec cat {} + 2>/dev/null | wc -l; }
# repo DIR: one whose single step works until the file DIR/go is there, and tells of itself in DIR. All of it lies in the
# repo: a step in a sandbox writes nowhere else.
repo() {
	mkdir -p "$1/.workflow/specs"
	cat > "$1/.workflow/specs/long.yaml" <<-EOF
		workflow: {id: long}
		steps:
		  - id: A
		    restarts: 0   # what ends with a wanted stop, or with the machine, counts for nothing
		    run: |
		      echo >> starts
		      trap 'echo >> told; exit 1' TERM
		      until [ -e go ]; do echo >> ticks; sleep 0.1; done
		      rm -f go
		    next_step: DONE
	EOF
	printf 'signals/\nruns/\nretry-context/\nbacklog/\n' > "$1/.workflow/.gitignore"
	(cd "$1" && git init -q && git config user.name t && git config user.email t@example.org && git add -A && git commit -qm start)
}
