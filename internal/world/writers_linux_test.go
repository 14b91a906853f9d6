package world

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"sluice/tools/conform"
)

// timesOf is a number that the environment names, or the short form's.
func timesOf(t *testing.T, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}

// TestWritersOfAnAgent: an agent leaves a process, of no parent and no session of its, that writes two files again and again,
// one of them always of the same size and time. What it wrote last is in what was taken, and nothing is written since.
// SLUICE_WRITERS says how often.
func TestWritersOfAnAgent(t *testing.T) {
	conform.Rule(t, "9-one-tree writers", "a process that outlives the agent, and a file written again with its time put back: all of it is in the taken tree")
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprintf("held=%v", held), func(t *testing.T) { writersOf(t, held) })
	}
}

func writersOf(t *testing.T, held bool) {
	b := newBench(t, `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, next_step: DONE}
`)
	b.hold(held)
	b.script("one", `rm -f ready
( ( setsid sh -c '
trap "" TERM HUP INT
i=0
while :; do
	i=$((i+1))
	printf "%04d %08d" $SLUICE_ATTEMPT $i >race.txt
	printf "%04d %08d" $SLUICE_ATTEMPT $i >same.txt
	touch -d @1000000000 same.txt
	[ $i -lt 3 ] || echo >ready
done' >/dev/null 2>&1 & ) & )
until [ -e ready ]; do sleep 0.01; done
`)
	b.sh("git add -A && git commit -qm before")
	for n := 1; n <= timesOf(t, "SLUICE_WRITERS", 5); n++ {
		j := inSpace(b.stepJob("A", n, 1), space1)
		if ev := b.carry(j); ev.Exit.Code != 0 {
			t.Fatalf("%+v %s", ev.Exit, b.get(fmt.Sprintf(".workflow/runs/w-1/A.%d/stderr", n)))
		}
		if r := b.carry(inSpace(b.checkJob("A", n), space1)).Check; !r.OK {
			t.Fatalf("%d: %+v", n, r)
		}
		for _, file := range []string{"race.txt", "same.txt"} {
			is, taken := b.get(space1+"/"+file), b.sh(fmt.Sprintf("git show refs/sluice/taken/w-1/A.%d:%s", n, file))
			if is != taken {
				t.Errorf("%d: %s is %q, taken was %q", n, file, is, taken)
			}
		}
	}
}
