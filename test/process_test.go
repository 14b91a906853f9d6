//go:build linux

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"sluice/agents"
	"sluice/tools/conform"
)

const (
	flooded   = 1 << 30 // bytes that the command says
	floodedMB = 64      // that the daemon, and the process that its launch lives under, may have in memory
)

// floodSpec has a step that says far more than is kept, on both of its outputs.
const floodSpec = `workflow: {id: flood}
steps:
  - id: A
    run: |
      set -e
      echo first; head -c %d /dev/zero; echo last
      echo first >&2; head -c %d /dev/zero >&2; echo last >&2
    next_step: DONE
`

// A command that prints a gigabyte costs neither memory nor disk: the start and the end of each
// output are kept, and the rest is counted.
func TestAGigabyteOfOutput(t *testing.T) {
	conform.Rule(t, "7-agents output", "a gigabyte: the daemon's memory and its launch's stay under 64 MB, nothing is miscounted")
	t.Parallel()
	w := &inboxBox{newSandbox(t, watchSettings)}
	const ofErr = flooded / 8
	w.put("repo/.workflow/specs/flood.yaml", fmt.Sprintf(floodSpec, flooded-ofErr, ofErr))
	w.commit()
	w.do(w.bin, "watch", "add")
	w.served()
	w.do(w.bin, "start", "flood")
	phase := ""
	eventually(t, "the run ends", func() bool {
		if r, ok := w.run(); ok {
			phase = r.Phase
		}
		return phase == "completed" || phase == "failed"
	})
	if phase != "completed" {
		t.Fatalf("it %s", phase)
	}
	hosts := 0
	for _, pid := range append(childrenOf(w.last.Process.Pid), w.last.Process.Pid) {
		mb := peakMB(t, pid)
		t.Logf("process %d had %d MB at most", pid, mb)
		if mb >= floodedMB {
			t.Errorf("process %d (daemon: %d) had %d MB: under %d are allowed", pid, w.last.Process.Pid, mb, floodedMB)
		}
		hosts++
	}
	if hosts < 2 {
		t.Error("the launch's process has gone: its memory was not seen")
	}
	for name, said := range map[string]int{"stdout": flooded - ofErr, "stderr": ofErr} {
		said += len("first\nlast\n")
		text, err := os.ReadFile(filepath.Join(w.repo, ".workflow/runs/flood-1/A.1", name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > agents.DefaultMaxOutput {
			t.Errorf("%s has %d bytes, more than %d", name, len(text), agents.DefaultMaxOutput)
		}
		note := regexp.MustCompile(`\n\[sluice: (\d+) bytes of output are left out here\]\n`).FindSubmatchIndex(text)
		if note == nil || !bytes.HasPrefix(text, []byte("first\n")) || !bytes.HasSuffix(text, []byte("last\n")) {
			t.Errorf("%s: %d bytes, without its begin, its end, or a word on what is left out", name, len(text))
			continue
		}
		left, err := strconv.Atoi(string(text[note[2]:note[3]]))
		if kept := len(text) - (note[1] - note[0]); err != nil || kept+left != said {
			t.Errorf("%s: %d bytes are kept and %d left out; it said %d", name, kept, left, said)
		}
	}
}

// childrenOf are the processes that the process started and that live.
func childrenOf(pid int) (out []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, link := range links {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if parentOf(child) == pid && !zombie(filepath.Dir(link)) {
			out = append(out, child)
		}
	}
	return out
}
