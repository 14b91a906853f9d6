package world

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/sandbox"
	"sluice/tools/conform"
)

// standInBox is a sandbox whose program notes what it is asked for and runs the command without it: for what a launch is
// given, on machines without bubblewrap.
func standInBox(t *testing.T) (box *sandbox.Box, asked func() []launchAsked) {
	t.Helper()
	dir, notes := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
fd=$2
shift 3
case "$*" in *"its own folder is not there"*) echo held; exit ;; esac
note=$(mktemp %s/XXXXXX)
eval "cat <&$fd" >"$note"
for arg; do printf 'COMMAND %%s\0' "$arg"; done >>"$note"
[ "$2" = %s ] && shift 2
tr '\0' '\n' <"$note" >"$note.lines"
while IFS= read -r option; do
	case $option in
	--setenv) read -r name; IFS= read -r value; export "$name=$value" ;;
	--chdir) IFS= read -r to; cd "$to" || exit ;;
	esac
done <"$note.lines"
rm "$note.lines"
exec "$@"
`, notes, sandbox.CheckCommand)
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	box, err = sandbox.Find(t.Context(), self, dir)
	if err != nil {
		t.Fatal(err)
	}
	return box, func() (list []launchAsked) {
		names, err := filepath.Glob(filepath.Join(notes, "*"))
		if err != nil || len(names) == 0 {
			t.Fatalf("nothing was started through it: %v", err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			l := launchAsked{writes: map[string]string{}}
			options := strings.Split(string(data), "\x00")
			for i, o := range options {
				switch {
				case o == "--bind" || o == "--bind-try":
					l.writes[options[i+2]] = options[i+1]
				case strings.HasPrefix(o, "COMMAND "):
					l.argv += o
				}
			}
			list = append(list, l)
		}
		return list
	}
}

// launchAsked is one launch through the stand-in.
type launchAsked struct {
	argv   string
	writes map[string]string // what it can write to: where it sees it -> what it is
}

// TestMountsOfLaunches: what an agent, a criterion and a gate's command can write to. What the kernel makes of it is
// TestHeldOutOfAnotherRepo's and its like's, where bubblewrap is installed.
func TestMountsOfLaunches(t *testing.T) {
	conform.Rule(t, "001 agent.folder", "what it can write to, by the mounts it is given")
	conform.Rule(t, "4-trust sandbox", "each launch is started through the sandbox's program, and the inbox of answers is none of its mounts")
	conform.Rule(t, "4-trust own inbox", "another for each launch, in the place of the inbox of answers")
	conform.Rule(t, "9-one-tree cache", "no judge is given what agents can write to")
	box, asked := standInBox(t)
	cache := realPath(t, t.TempDir())
	b, taken := judgeBench(t, false, "true # judges")
	b.e.Close()
	b.e = b.executor(func(o *Options) { o.Sandbox = func() (*sandbox.Box, error) { return box, nil } })
	b.settings.Sandbox.Write = []string{cache}
	b.script("writer", "true\n")
	b.carry(b.stepJob("B", 1, 1))
	b.carry(ofCommit(b.checkJob("A", 1), taken))
	b.carry(ofCommit(b.reviewJob("G", 1), taken))
	launches, inboxes := asked(), map[string]bool{}
	if len(launches) != 3 {
		t.Fatalf("%d launches through it, want an agent's, a criterion's and a gate's: %v", len(launches), launches)
	}
	for _, l := range launches {
		agent := strings.Contains(l.argv, "agents/writer")
		for at, is := range l.writes {
			own := is == b.path(".workflow/runs/w-1/files") || strings.HasSuffix(is, "/own")
			switch {
			case is == b.root || is == cache:
				if !agent {
					t.Errorf("a judge can write to %s, as agents can: %s", is, l.argv)
				}
			case !strings.HasPrefix(is, b.state+"/") && !own:
				t.Errorf("%s can write to %s, seen at %s", l.argv, is, at)
			}
		}
		inbox := l.writes[b.path(".workflow/signals")]
		if inbox == "" || inbox == b.path(".workflow/signals") || inboxes[inbox] {
			t.Errorf("the inbox of %s is %q", l.argv, inbox)
		}
		inboxes[inbox] = true
	}
}
