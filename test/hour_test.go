//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

const hourSpec = `
workflow: {id: hour%s}
steps:
  - {id: A, agent: {type: writer, prompt: "do A"}, signal: {type: sentinel_file}, gate: GA}
  - {id: B, agent: {type: writer, prompt: "do B"}, signal: {type: sentinel_file}, gate: GB}
gates:
  - {id: GA, reviewer: {level: human}, on_pass: {next_step: B}}
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// hourAgent changes a file that is as it was, and makes one. In a worktree of the run's it also commits, and waits at B until
// the person has saved.
const hourAgent = `#!/bin/sh
set -e
echo "agent $SLUICE_STEP" >>shared.txt
echo "agent $SLUICE_STEP" >"made-$SLUICE_STEP.txt"
if [ -e commits ]; then git add "made-$SLUICE_STEP.txt"; git -c user.name=agent -c user.email=agent@example.org commit -q -m "agent $SLUICE_STEP"; fi
sluice signal "$SLUICE_STEP"
`

// TestAUsersHour: a person goes on with what they had begun while a run works: edits, staged hunks, untracked and ignored
// files, a stash, an editor with a swap file and a file that it saves meanwhile. Nothing of it is changed, lost, or shown as a
// step's; after the landing it is as it was.
func TestAUsersHour(t *testing.T) {
	for _, held := range []bool{false, true} {
		for _, where := range []string{"checkout", "worktree"} {
			t.Run(fmt.Sprintf("%s, held %v", where, held), func(t *testing.T) {
				t.Parallel()
				conform.Rule(t, "9-one-tree hour", "nothing of the person's is changed, lost or shown as the step's")
				usersHour(t, held, where == "worktree")
			})
		}
	}
}

// hour is the person's side of it.
type hour struct {
	*sandbox
	worktree bool
	editor   *os.File // has notes.md open
	before   map[string]string
}

func usersHour(t *testing.T, held, worktree bool) {
	settings := "agents: {a: {command: [./agent.sh], prompt_via: file}}\nroles: {writer: {agent: a}}\n"
	var w *sandbox
	if held {
		w = newCaged(t, settings)
	} else {
		w = newSandbox(t, quickTimes+settings)
	}
	workspace := ""
	if worktree {
		workspace = ", workspace: run"
		w.put("repo/commits", "")
	}
	w.put("repo/.workflow/specs/hour.yaml", fmt.Sprintf(hourSpec, workspace))
	w.put("repo/agent.sh", hourAgent)
	if err := os.Chmod(filepath.Join(w.repo, "agent.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := &hour{sandbox: w, worktree: worktree}
	h.begin()
	w.up()
	h.before = h.state()
	w.do(w.bin, "start", "hour")
	h.atGate("GA", "A")
	h.saves()
	w.do(w.bin, "pass", "GA")
	h.atGate("GB", "B")
	w.do(w.bin, "pass", "GB")
	eventually(t, "the run is over", func() bool { st, ok := w.status(); return ok && len(st.Runs) == 1 && !st.Runs[0].Live() })
	if st, _ := w.status(); st.Runs[0].Phase != "completed" {
		t.Fatalf("%+v", st.Runs[0])
	}
	h.compare("at the end")
	if worktree {
		w.do(w.bin, "land", "hour-1")
		h.compare("after the landing")
		if landed := w.do("git", "show", "HEAD"); strings.Contains(landed, "PERSON") || !strings.Contains(landed, "agent B") {
			t.Errorf("what landed:\n%s", landed)
		}
		if got := w.do("cat", "shared.txt"); got != "shared\nagent A\nagent B\n" {
			t.Errorf("shared.txt: %q", got)
		}
	}
}

// begin is what the person has done before the run: each word of theirs is PERSON.
func (h *hour) begin() {
	h.t.Helper()
	long := func(first, last string) string {
		return first + "\n" + strings.Repeat("line\n", 20) + last + "\n"
	}
	for name, text := range map[string]string{"edited.txt": "edited\n", "shared.txt": "shared\n", "hunks.txt": long("first", "last"), "gone.txt": "gone\n",
		"notes.md": "notes\n", "mode.sh": "mode\n", "stashed.txt": "stashed\n", ".gitignore": ".env\n*.log\n"} {
		h.put("repo/"+name, text)
	}
	h.commit()
	h.put("repo/.git/info/exclude", ".workflow/audit/\n")
	h.put("repo/stashed.txt", "PERSON stashed\n")
	h.do("git", "stash", "-q")
	h.put("repo/hunks.txt", long("PERSON staged", "last"))
	h.do("git", "add", "hunks.txt")
	h.put("repo/hunks.txt", long("PERSON staged", "PERSON not staged"))
	h.put("repo/new.txt", "PERSON new\n")
	h.do("git", "add", "new.txt")
	h.do("git", "rm", "-q", "gone.txt")
	h.put("repo/edited.txt", "PERSON edited\n")
	h.put("repo/mine.txt", "PERSON untracked\n")
	h.put("repo/dir/mine.txt", "PERSON untracked too\n")
	h.put("repo/.env", "PERSON=secret\n")
	h.put("repo/.notes.md.swp", "b0VIM\x00PERSON swap")
	if err := os.Chmod(filepath.Join(h.repo, "mode.sh"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	var err error
	if h.editor, err = os.OpenFile(filepath.Join(h.repo, "notes.md"), os.O_RDWR, 0); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.editor.Close() })
}

// saves is the editor writing what was unsaved: into the file it has open, and another one by a rename.
func (h *hour) saves() {
	h.t.Helper()
	if _, err := h.editor.WriteAt([]byte("PERSON saved\n"), 0); err != nil {
		h.t.Fatal(err)
	}
	h.put("repo/edited.txt.new", "PERSON edited, and saved\n")
	if err := os.Rename(filepath.Join(h.repo, "edited.txt.new"), filepath.Join(h.repo, "edited.txt")); err != nil {
		h.t.Fatal(err)
	}
	if !h.worktree { // what they saved in the folder of the run is theirs as well
		h.put("repo/late.txt", "PERSON late\n")
	}
	h.before = h.state()
}

// state is all of the person's: their files with what the system knows of them, the index, the stash, the branch.
func (h *hour) state() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	for _, args := range [][]string{{"diff", "--cached"}, {"stash", "list"}, {"stash", "show", "-p"}, {"diff", "--", "edited.txt", "hunks.txt", "notes.md", "mode.sh"}} {
		out[strings.Join(args, " ")] = h.do("git", args...)
	}
	var status []string
	for l := range strings.SplitSeq(h.do("git", "status", "--porcelain", "--untracked-files=all"), "\n") {
		if !strings.Contains(l, "shared.txt") && !strings.Contains(l, "made-") {
			status = append(status, l)
		}
	}
	out["status"] = strings.Join(status, "\n")
	for _, name := range []string{"edited.txt", "hunks.txt", "new.txt", "notes.md", "mode.sh", "mine.txt", "dir/mine.txt", ".env", ".notes.md.swp", "late.txt"} {
		info, err := os.Stat(filepath.Join(h.repo, name))
		if err != nil {
			continue
		}
		out[name] = fmt.Sprint(info.Mode(), " ", info.ModTime().UnixNano(), " ", h.do("stat", "-c", "%i", name), h.do("cat", name))
	}
	return out
}

// compare holds that all is as the person left it.
func (h *hour) compare(when string) {
	h.t.Helper()
	now := h.state()
	for what, was := range h.before {
		if now[what] != was {
			h.t.Errorf("%s: %s was\n%s\nand is\n%s", when, what, was, now[what])
		}
	}
	if file, err := os.Stat(filepath.Join(h.repo, "notes.md")); err != nil {
		h.t.Error(err)
	} else if open, err := h.editor.Stat(); err != nil || !os.SameFile(file, open) {
		h.t.Errorf("%s: the editor has another file open than notes.md: %v", when, err)
	}
	if _, err := os.Stat(filepath.Join(h.repo, ".git", "index.lock")); err == nil {
		h.t.Errorf("%s: the index is locked", when)
	}
}

// atGate waits until a step's gate asks, and holds that it shows the step's work and nothing else.
func (h *hour) atGate(gate, step string) {
	h.t.Helper()
	eventually(h.t, gate+" asks", func() bool { return h.asked(gate) })
	h.compare("at " + gate)
	show := h.do(h.bin, "show", gate, "--diff")
	diff := h.do(h.bin, "attempt", "diff", "hour-1", step+".1")
	for what, text := range map[string]string{"show": show, "attempt diff": diff} {
		if strings.Contains(text, "PERSON") || slices.ContainsFunc([]string{"mine.txt", "late.txt", ".swp", "mode.sh", "hunks.txt", ".env"}, func(f string) bool { return strings.Contains(text, f) }) {
			h.t.Errorf("%s of %s shows what is the person's:\n%s", what, gate, text)
		}
		if !strings.Contains(text, "made-"+step+".txt") || !strings.Contains(text, "+agent "+step) {
			h.t.Errorf("%s of %s lacks the step's work:\n%s", what, gate, text)
		}
	}
	if other := map[string]string{"A": "made-B", "B": "made-A"}[step]; strings.Contains(diff, other) {
		h.t.Errorf("the work of %s has that of the other step:\n%s", step, diff)
	}
}
