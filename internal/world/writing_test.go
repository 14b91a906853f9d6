//go:build unix

package world

import (
	"fmt"
	"strings"
	"testing"
)

// TestTakenBesideOwnWrites: a file that sluice is writing into the folder is no work under its first name, and fails no taking.
func TestTakenBesideOwnWrites(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer}, gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	for i := range 300 {
		b.put(fmt.Sprintf("src/%d.txt", i), "x\n")
	}
	b.sh("git add -A; git commit -q -m before")
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := b.e.Put("src/list.jsonl", b.root, []byte(strings.Repeat("x", 1+i%2))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for n := 1; n <= 20; n++ {
		b.begin(b.checkJob("A", n))
		c := b.carry(b.checkJob("A", n)).Check
		if !c.OK {
			t.Fatalf("attempt %d: %+v", n, c)
		}
	}
	close(stop)
	<-stopped
	if all := b.sh(`for r in $(git for-each-ref --format='%(refname)' refs/sluice); do git ls-tree -r --name-only $r; done`); strings.Contains(all, "sluice-tmp") {
		t.Error("a file that was being written was taken")
	}
}
