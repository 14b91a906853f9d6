//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// TestFloodOfForgedAnswers: an attempt that writes thousands of answers and signals into its inbox fills neither
// rejected/ nor the journal, and its own word still counts.
func TestFloodOfForgedAnswers(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "2-files refused", "3,000 forged answers: a few are kept, the rest is counted in one line, and the attempt's own signal counts")
	w := newCaged(t, "trust: sandbox\nagents: {forger: {command: [./forge.sh]}}\nroles: {forger: {agent: forger}}\n")
	w.put("repo/forge.sh", `#!/bin/sh
set -e
i=0
mkdir -p .workflow/signals/pipe-1
echo ok >.workflow/signals/G-pass
while [ $i -lt 3000 ]; do
	case $((i % 3)) in
	0) f=G-pass-$i.json ;;
	1) f=junk-$i ;;
	2) f=pipe-1/B-done-$i.json ;;
	esac
	echo '{"feedback": "'$i'"}' >.workflow/signals/$f
	i=$((i + 1))
done
echo '{"status": "do' >.workflow/signals/pipe-1/A-done.json
sleep 1
until sluice signal A; do sleep 1; done # the torn file may not have been taken away yet
`)
	w.put("repo/.workflow/specs/pipe.yaml", `
workflow: {id: pipe}
steps:
  - {id: A, agent: {type: forger, prompt: forge}, signal: {type: sentinel_file}, gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	if err := os.Chmod(filepath.Join(w.repo, "forge.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.starts("pipe")
	eventually(t, "the gate asks", func() bool { return w.asked("G") })

	eventually(t, "the rest is counted", func() bool { return strings.Contains(w.do(w.bin, "log", "--all"), "these were counted and not kept") })
	rejected := func() int {
		kept, err := os.ReadDir(filepath.Join(w.repo, ".workflow/signals/rejected"))
		if err != nil {
			t.Fatal(err)
		}
		return len(kept)
	}
	// Those that were not moved yet when the launch ended went with its inbox.
	eventually(t, "some are kept", func() bool { return rejected() >= 2 })
	// Each with its reason; a scan counts from what was decided when it began, so that a few more may come.
	if n := rejected(); n > 4*engine.KeepRefused {
		t.Errorf("%d files in rejected/, want about %d", n, 2*engine.KeepRefused)
	}
	journal, err := os.ReadFile(filepath.Join(w.state(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Count(string(journal), "\n")
	if told > 6*engine.KeepRefused {
		t.Errorf("%d records", told)
	}
	log := w.do(w.bin, "log", "--all")
	if strings.Count(log, "counted and not kept") > 2 || !strings.Contains(log, "pipe-1/A#1.1") {
		t.Errorf("%s", log)
	}
	w.do(w.bin, "pass", "G")
	eventually(t, "the run is over", func() bool { st, ok := w.status(); return ok && !st.Runs[0].Live() })
}
