//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

const longSpec = `
workflow: {id: pipe}
steps:
  - id: A
    agent: {type: writer, prompt: work}
    signal: {type: sentinel_file}
    next_step: DONE
`

// TestHeldAgentOutlivesTheDaemon: an agent in a sandbox works on while the daemon is killed, is adopted, and its signal
// counts; one that is ended gets its time to finish, and leaves nothing.
func TestHeldAgentOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	w := newCaged(t, "sandbox: {mode: on}\nagents: {writer: {command: [./write.sh], env: [E2E_WORK]}}\nroles: {writer: {agent: writer}}\n")
	w.put("repo/write.sh", `#!/bin/sh
trap 'echo "asked to end" >ended; sleep 0.3; echo finished >>ended; exit 0' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
echo here >"started.$SLUICE_ATTEMPT"
until [ -e .workflow/runs/$SLUICE_RUN/files/go ]; do sleep 0.05; done
sluice signal A -m "went on"
`)
	if err := os.Chmod(filepath.Join(w.repo, "write.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.put("repo/.workflow/specs/pipe.yaml", longSpec)
	w.starts("pipe")
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(w.repo, name)); return err == nil }
	}
	eventually(t, "the agent works", there("started.1"))
	w.kill()
	w.boot()
	w.serves()
	w.put("repo/.workflow/runs/pipe-1/files/go", "")
	eventually(t, "the run is over", func() bool { st, ok := w.status(); return ok && len(st.Runs) == 1 && !st.Runs[0].Live() })
	st, _ := w.status()
	if st.Runs[0].Phase != engine.RunCompleted || st.Runs[0].Steps[0].Summary != "went on" || st.Runs[0].Steps[0].Attempt != 1 {
		t.Errorf("%+v\n%s", st.Runs[0], w.do(w.bin, "log", "--all"))
	}
	if launches, _ := filepath.Glob(filepath.Join(w.repo, ".workflow/runs/pipe-1/A.1/launch-*")); len(launches) > 0 {
		t.Errorf("it was launched again: %v", launches)
	}
	// The second run is ended by a person.
	w.do("sh", "-c", "rm -f started.1 ended")
	w.do(w.bin, "start", "pipe")
	eventually(t, "the agent works", there("started.1"))
	if left := len(processesOf(w.work)); left < 3 {
		t.Errorf("%d processes of it are known", left)
	}
	w.do(w.bin, "abort", "pipe-2", "--yes")
	eventually(t, "its tree is gone", func() bool {
		return !slices.ContainsFunc(processesOf(w.work), func(pid int) bool {
			cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return strings.Contains(string(cmd), "write.sh") || strings.Contains(string(cmd), "bwrap") || strings.Contains(string(cmd), "while :")
		})
	})
	if data, err := os.ReadFile(filepath.Join(w.repo, "ended")); err != nil || string(data) != "asked to end\nfinished\n" {
		t.Errorf("it had no time to finish: %q %v", data, err)
	}
}

// TestEvilRepo runs a pipeline in a repo whose git would run a program at every turn: neither the daemon nor a command that
// looks at the repo runs any. What the agent itself runs does so in its sandbox, where the trace cannot be left.
func TestEvilRepo(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "4-trust nothing by accident", "a whole pipeline, with worktrees, commits, pull requests, diffs and salvage, in a repo that would run its own programs")
	w := newCaged(t, "sandbox: {mode: on}\npr_poll: 1s\nagents: {writer: {command: [./write.sh]}, puller: {command: [./pull.sh]}}\nroles: {writer: {agent: writer}, puller: {agent: puller}}\n")
	trace := filepath.Join(w.work, "trace")
	w.put("canary", "#!/bin/sh\necho \"$0 $*\" >>"+trace+"\n[ $# -gt 0 ] || cat\n")
	canary := filepath.Join(w.work, "canary")
	git := "git -c commit.gpgsign=false -c user.name=x -c user.email=x@example.org"
	w.put("repo/write.sh", "#!/bin/sh\nsleep 1.1 # not a double of the commit before\necho \"$SLUICE_ATTEMPT\" >out.txt\n"+git+" add -A\n"+git+" commit -q --no-verify -m \"work\n\n[GATE:G]\"\n")
	w.put("repo/pull.sh", "#!/bin/sh\nexit 0\n")
	w.put("repo/file.txt", "one\n")
	w.put("repo/.gitattributes", "* filter=evil diff=evil merge=evil\n")
	w.put("repo/.gitignore", "wt/\n")
	w.put("repo/.workflow/specs/pipe.yaml", `
workflow: {id: pipe, protect: ["*.key"]}
steps:
  - {id: A, agent: {type: writer, prompt: write, worktree: wt/}, outputs: [out.txt], success_criterion: "file out.txt exists and is non-empty", signal: {type: git_commit}, gate: G}
  - {id: P, agent: {type: puller, prompt: pull, worktree: wt/}, signal: {type: pr_creation}, gate: H}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: P}, on_fail: {next_step: A}}
  - {id: H, reviewer: {level: auto, from: step}, on_pass: {next_step: DONE}, max_retries: 1, on_exhausted: FAILED}
`)
	for _, f := range []string{"canary", "repo/write.sh", "repo/pull.sh"} {
		if err := os.Chmod(filepath.Join(w.work, f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.commit()
	var conf strings.Builder
	for _, key := range []string{"core.fsmonitor", "gpg.program", "diff.external", "core.pager", "core.editor", "core.sshCommand", "credential.helper", "core.askPass", "pager.log", "pager.diff",
		"core.alternateRefsCommand", "uploadpack.packObjectsHook", "sequence.editor", "mergetool.x.cmd"} {
		i := strings.LastIndex(key, ".")
		fmt.Fprintf(&conf, "[%s]\n\t%s = %s\n", key[:i], key[i+1:], canary)
	}
	fmt.Fprintf(&conf, "[diff \"evil\"]\n\ttextconv = %[1]s\n\tcommand = %[1]s\n[filter \"evil\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n[merge \"evil\"]\n\tdriver = %[1]s\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n", canary)
	fmt.Fprintf(&conf, "[alias]\n\tstatus = !%[1]s\n\tlog = !%[1]s\n\trev-parse = !%[1]s\n\tworktree = !%[1]s\n[protocol \"ext\"]\n\tallow = always\n[remote \"origin\"]\n\turl = \"ext::%[1]s %%S\"\n\tuploadpack = %[1]s\n", canary)
	w.put("included", conf.String())
	file := filepath.Join(w.repo, ".git/config")
	old, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(string(old)+conf.String()+"[include]\n\tpath = "+filepath.Join(w.work, "included")+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "pre-auto-gc", "post-merge", "pre-push"} {
		if err := os.MkdirAll(filepath.Join(w.repo, ".git/hooks"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(canary, filepath.Join(w.repo, ".git/hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	clean := func(doing string) {
		t.Helper()
		if data, err := os.ReadFile(trace); err == nil {
			t.Errorf("%s ran programs of the repo's:\n%s", doing, data)
			_ = os.Remove(trace)
		}
	}
	w.up()
	w.do(w.bin, "start", "pipe")
	eventually(t, "the gate asks", func() bool { return w.asked("G") })
	clean("a worktree, an attempt, its commit and its check")
	for _, args := range [][]string{{"status"}, {"show", "G", "--diff"}, {"inbox"}, {"log"}, {"attempt", "diff", "last", "A.1"}, {"attempt", "checkout", "last", "A.1", "../looked"}, {"doctor"}, {"explain", "G"}} {
		out, err := w.try(w.bin, args...)
		if err != nil && args[0] != "doctor" {
			t.Errorf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		clean("sluice " + strings.Join(args, " "))
	}
	w.do(w.bin, "fail", "G", "-m", "once more")
	eventually(t, "the gate asks again", func() bool {
		st, ok := w.status()
		return ok && w.asked("G") && slices.ContainsFunc(st.Runs[0].Steps, func(s daemon.StepStatus) bool { return s.ID == "A" && s.Attempt == 2 })
	})
	clean("a second attempt")
	w.do(w.bin, "pass", "G", "--round", "2")
	eventually(t, "it is told that such a remote is not asked", func() bool { return strings.Contains(w.do(w.bin, "status"), "not an address to ask") })
	clean("a step that waits for a pull request of an ext:: remote")
	w.do(w.bin, "abort", "pipe-1", "--yes")
	w.do(w.bin, "clean", "--yes", "--keep", "0")
	clean("sluice clean")
}
