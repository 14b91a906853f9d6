package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/workspace"
)

func TestFaultsOfTheCommandLine(t *testing.T) {
	w := newWorld(t, true)
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"valdate"}, fault.ExitUsage, []string{`no command "sluice valdate"`, "did you mean `sluice validate`?"}},
		{[]string{"publish"}, fault.ExitUsage, []string{`no command "sluice publish"`, "did you mean `sluice release`?"}},
		{[]string{"cancel", "x-1"}, fault.ExitUsage, []string{`no command "sluice cancel"`, "did you mean `sluice abort`?"}},
		{[]string{"help", "cancel"}, fault.ExitUsage, []string{"did you mean `sluice help abort`?"}},
		{[]string{"approve"}, fault.ExitUsage, []string{"GATE is missing", "usage: sluice pass GATE"}},
		{[]string{"reject", "G", "-m", " "}, fault.ExitUsage, []string{"fail G: no reason given", "give it with -m"}},
		{[]string{"fail", "G"}, fault.ExitUsage, []string{"fail G: no reason given", "give it with -m"}},
		{[]string{"watch", "ad"}, fault.ExitUsage, []string{`no command "sluice watch ad"`, "did you mean `sluice watch add`?"}},
		{[]string{"validate", "--jsn"}, fault.ExitUsage, []string{"sluice validate: unknown flag --jsn", "did you mean --json?"}},
		{[]string{"status", "--zzzzzz"}, fault.ExitUsage, []string{"unknown flag --zzzzzz", "`sluice status --help` lists its flags"}},
		{[]string{"pass"}, fault.ExitUsage, []string{"sluice pass: GATE is missing", "usage: sluice pass GATE"}},
		{[]string{"decide", "G-1"}, fault.ExitUsage, []string{"OUTCOME is missing"}},
		{[]string{"version", "x"}, fault.ExitUsage, []string{"sluice version: unexpected argument: x"}},
		{[]string{"completion", "tcsh"}, fault.ExitUsage, []string{`no completion for the shell "tcsh"`}},
		{[]string{"init", "--template", "gated-pipelin"}, fault.ExitUsage, []string{"did you mean --template gated-pipeline?"}},
		{[]string{"help", "valdate"}, fault.ExitUsage, []string{"did you mean `sluice help validate`?"}},
		{[]string{"clean", "--older", "soon"}, fault.ExitUsage, []string{"--older soon: not a duration"}},
		{[]string{"validate"}, fault.ExitFailed, []string{"no .workflow/ here", "`sluice init` creates it"}},
		{[]string{"journal", "repair"}, fault.ExitUsage, []string{"sluice journal repair: --to N is missing"}},
		{[]string{"--nope"}, fault.ExitUsage, []string{"sluice: unknown flag --nope"}},
	} {
		code, out, errs := w.sluice(c.args...)
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s%s", c.args, code, c.code, out, errs)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("%v: %q is not said: %q", c.args, want, errs)
			}
		}
		if strings.Contains(errs, "sluice: sluice") {
			t.Errorf("%v: the command's name is doubled: %q", c.args, errs)
		}
		if n := strings.Count(errs, "\n"); n > 2 || out != "" {
			t.Errorf("%v: want one line of cause and one of mend and nothing else: %q %q", c.args, out, errs)
		}
	}
}

// TestOtherNames: commands have the names that people know from other tools.
func TestOtherNames(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/config.yaml", "")
	for _, args := range [][2]string{{"--version", "version"}, {"list", "ls"}, {"watch list", "watch ls"}, {"logs", "log"}} {
		code, out, errs := w.sluice(strings.Fields(args[0])...)
		wantCode, want, wantErrs := w.sluice(strings.Fields(args[1])...)
		if code != wantCode || out != want || errs != wantErrs {
			t.Errorf("%s: %d %q %q, want what %s prints: %d %q %q", args[0], code, out, errs, args[1], wantCode, want, wantErrs)
		}
	}
}

func TestPlaces(t *testing.T) {
	w := newWorld(t, false)
	if code, _, errs := w.sluice("status"); code != fault.ExitFailed || !strings.Contains(errs, "no git repository") || !strings.Contains(errs, "git init") {
		t.Errorf("without a repo: %d %q", code, errs)
	}
	w.dir = filepath.Join(w.dir, "none")
	if code, _, errs := w.sluice("status"); code != fault.ExitUsage || !strings.Contains(errs, "no such folder") {
		t.Errorf("without a folder: %d %q", code, errs)
	}
	w = newWorld(t, true)
	w.env = []string{"PATH=" + os.Getenv("PATH")}
	w.write(".workflow/config.yaml", "")
	if code, _, errs := w.sluice("status"); code != fault.ExitFailed || !strings.Contains(errs, "set HOME") {
		t.Errorf("without a home: %d %q", code, errs)
	}
}

// TestInALinkedWorktree: who stands in one means the main checkout's runs.
func TestInALinkedWorktree(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/config.yaml", "")
	for _, args := range [][]string{{"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "x"}, {"worktree", "add", "-q", "../linked"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	p, err := workspace.Find(t.Context(), console.New(w.env, nil, nil, nil), filepath.Join(filepath.Dir(w.dir), "linked"))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(w.dir); p.Root != want {
		t.Errorf("root is %s, want %s", p.Root, want)
	}
}

// TestNoAgentDecides: from within an attempt no gate is decided by the command.
func TestNoAgentDecides(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/config.yaml", "")
	w.env = append(w.env, "SLUICE_TOKEN=abc", "SLUICE_RUN=w-1")
	for _, args := range [][]string{{"pass", "G"}, {"fail", "G", "-m", "x"}, {"veto", "G", "-m", "x"}, {"decide", "G", "pass"}} {
		if code, _, errs := w.sluice(args...); code != fault.ExitFailed || !strings.Contains(errs, "only a person decides") {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
}

// TestReadmeSpec: the spec at the head of the README is a correct one.
func TestReadmeSpec(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, spec, ok := strings.Cut(string(readme), "```yaml\n")
	spec, _, closed := strings.Cut(spec, "```\n")
	if !ok || !closed {
		t.Fatal("the README has no spec")
	}
	w := newWorld(t, true)
	w.write(".workflow/specs/search.yaml", spec)
	if code, out, errs := w.sluice("validate"); code != 0 || strings.Contains(out+errs, "note") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// TestCommandsThatRunNoGit: what a person looks at all day costs no process besides its own.
func TestCommandsThatRunNoGit(t *testing.T) {
	w := newWorld(t, true)
	w.write(".workflow/specs/w.yaml", "workflow: {id: w}\nsteps: [{id: A, run: echo, next_step: DONE}]\n")
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho \"$*\" >>"+ran+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, command := range []string{"status", "inbox", "ls", "log", "validate", "config"} {
		if code, _, errs := w.sluice(command); code != 0 {
			t.Errorf("%s: %d %s", command, code, errs)
		}
		if did, err := os.ReadFile(ran); err == nil {
			t.Errorf("%s ran git:\n%s", command, did)
			_ = os.Remove(ran)
		}
	}
}

// TestNothingIsCompiledAtStart: a command does not pay for the start of libraries that it does not use. What they do
// before main is counted by what they allocate, which no load changes.
func TestNothingIsCompiledAtStart(t *testing.T) {
	w := newWorld(t, false)
	w.env = append(w.env, "GODEBUG=inittrace=1")
	_, _, trace := w.sluice("version")
	all := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(trace, -1)
	if len(all) < 20 {
		t.Fatalf("it traces %d packages:\n%s", len(all), trace)
	}
	sum := 0
	for _, m := range all {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if sum += n; n > 200<<10 {
			t.Errorf("%s allocates %d KiB before main", m[1], n>>10)
		}
	}
	if sum > 700<<10 {
		t.Errorf("all packages allocate %d KiB before main", sum>>10)
	}
	t.Logf("%d KiB before main", sum>>10)
}
