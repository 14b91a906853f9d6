package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/fault"
)

// playground is a place to run commands in.
type playground struct {
	t   *testing.T
	dir string
	env []string
}

// newWorld makes a folder with a home of its own; with a repo in it, unless bare.
func newWorld(t *testing.T, repo bool) *playground {
	t.Helper()
	dir := t.TempDir()
	w := &playground{t: t, dir: filepath.Join(dir, "work"), env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "SLUICE_CONFIG_SANDBOX_MODE=off"}}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if repo {
		if out, err := exec.Command("git", "-C", w.dir, "init", "-q").CombinedOutput(); err != nil {
			t.Fatalf("git init: %v %s", err, out)
		}
	}
	return w
}

// sluice runs one command line in the world.
func (w *playground) sluice(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code = run(ctx, append([]string{"-C", w.dir}, args...), w.env, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func (w *playground) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func TestFaultsOfTheCommandLine(t *testing.T) {
	w := newWorld(t, true)
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"valdate"}, fault.ExitUsage, []string{`no command "sluice valdate"`, "did you mean `sluice validate`?"}},
		{[]string{"watch", "ad"}, fault.ExitUsage, []string{`no command "sluice watch ad"`, "did you mean `sluice watch add`?"}},
		{[]string{"validate", "--jsn"}, fault.ExitUsage, []string{"unknown flag --jsn", "did you mean --json?"}},
		{[]string{"status", "--zzzzzz"}, fault.ExitUsage, []string{"unknown flag --zzzzzz", "`sluice status --help` lists its flags"}},
		{[]string{"pass"}, fault.ExitUsage, []string{"GATE is missing", "usage: sluice pass GATE"}},
		{[]string{"decide", "G-1"}, fault.ExitUsage, []string{"OUTCOME is missing"}},
		{[]string{"version", "x"}, fault.ExitUsage, []string{"is too much: x"}},
		{[]string{"completion", "tcsh"}, fault.ExitUsage, []string{`no completion for the shell "tcsh"`}},
		{[]string{"init", "--template", "gated-pipelin"}, fault.ExitUsage, []string{"did you mean --template gated-pipeline?"}},
		{[]string{"help", "valdate"}, fault.ExitUsage, []string{"did you mean `sluice help validate`?"}},
		{[]string{"clean", "--older", "soon"}, fault.ExitUsage, []string{"--older soon: not a duration"}},
		{[]string{"validate"}, fault.ExitFailed, []string{"no .workflow/ here", "`sluice init` creates it"}},
		{[]string{"journal", "repair"}, fault.ExitUsage, []string{"--to N is missing"}},
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
		if n := strings.Count(errs, "\n"); n > 2 || out != "" {
			t.Errorf("%v: want one line of cause and one of mend and nothing else: %q %q", c.args, out, errs)
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
	a := newApp(w.env, nil, nil, nil)
	a.dir = filepath.Join(filepath.Dir(w.dir), "linked")
	p, err := a.place(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(w.dir); p.Root != want {
		t.Errorf("root is %s, want %s", p.Root, want)
	}
}

func TestEveryCommandTeaches(t *testing.T) {
	a := newApp(nil, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	seen := 0
	root := rootCommand(a)
	for _, c := range root.Commands() {
		all := append(c.Commands(), c)
		for _, c := range all {
			if c.Hidden || c.Name() == "help" {
				continue
			}
			seen++
			if c.Short == "" || len(c.Long) < 40 || strings.Count(c.Example, "\n") < 1 {
				t.Errorf("%s: want what it does, when one wants it, and two examples", c.CommandPath())
			}
			for _, l := range strings.Split(c.Long+"\n"+c.Example, "\n") {
				if len(l) > 104 {
					t.Errorf("%s: a line of the help has %d characters", c.CommandPath(), len(l))
				}
			}
			if c.Args == nil {
				t.Errorf("%s takes any arguments", c.CommandPath())
			}
		}
	}
	for _, want := range strings.Fields("init validate fmt graph run start demo daemon watch ls status show inbox pass fail veto decide signal next pause resume abort retry log tail explain audit journal config clean doctor notify completion version note takeover handback land") {
		if c, _, err := root.Find([]string{want}); err != nil || c.Name() != want {
			t.Errorf("there is no command %s", want)
		}
	}
	if seen < 35 {
		t.Errorf("%d commands were seen", seen)
	}
}

func TestFaultsOfThePackagesBelow(t *testing.T) {
	for _, c := range []struct {
		err         error
		code        int
		cause, mend string
	}{
		{fmt.Errorf("x: %w", context.Canceled), fault.ExitInterrupted, "interrupted", ""},
		{fmt.Errorf("open: %w", os.ErrPermission), fault.ExitFailed, "open: permission denied", "find the owner of the file"},
		{fmt.Errorf("spec a: %w", fault.New("fix it first", "it is broken")), fault.ExitFailed, "spec a: it is broken", "fix it first"},
		{errors.New("open a: no b: no such file"), fault.ExitFailed, "open a: no b: no such file", ""},
		{&daemon.Held{Dir: "/s", PID: 7}, fault.ExitServed, "the state /s is held by pid 7: only one process serves a repo", "use that one, or end it"},
		{errors.New("one: two"), fault.ExitFailed, "one: two", ""},
		{errors.New("a: b: c"), fault.ExitFailed, "a: b: c", ""},
	} {
		f := explain(c.err)
		if f.Code != c.code || f.Cause != c.cause || !strings.HasPrefix(f.Advice, c.mend) || (c.mend == "") != (f.Advice == "") {
			t.Errorf("%v: %+v", c.err, f)
		}
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

// TestWhatIsNotLinked: some libraries cost every process its start, the shims' too.
func TestWhatIsNotLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"github.com/goccy/go-graphviz", "github.com/tetratelabs/wazero"} {
		if strings.Contains(string(out), heavy) {
			t.Errorf("%s is linked: it is loaded by each process", heavy)
		}
	}
}

// TestExamplesAreRight: each line of sluice in a help's examples names a command, flags and as many arguments as there are.
func TestExamplesAreRight(t *testing.T) {
	words := regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`)
	seen := 0
	var walk func(c *cobra.Command)
	check := func(of *cobra.Command, line string) {
		line, _, _ = strings.Cut(line, "#")
		for _, part := range regexp.MustCompile(`&&|\||<|>`).Split(line, -1) {
			args := words.FindAllString(strings.TrimSuffix(strings.TrimSpace(part), ")"), -1)
			for len(args) > 0 && (strings.Contains(args[0], "=") || args[0] == "source" || args[0] == "(") {
				args = args[1:]
			}
			if len(args) == 0 || args[0] != "sluice" && args[0] != "(sluice" {
				continue
			}
			seen++
			root := rootCommand(newApp(nil, nil, nil, nil)) // flags keep what they were set to
			cmd, rest, err := root.Find(args[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || cmd == root {
				t.Errorf("%s: example %q: %v", of.CommandPath(), strings.Join(args, " "), err)
			}
		}
	}
	walk = func(c *cobra.Command) {
		for _, line := range strings.Split(c.Example, "\n") {
			check(c, line)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(newApp(nil, nil, nil, nil)))
	if seen < 70 {
		t.Errorf("%d examples were seen", seen)
	}
}

// TestStoppedServiceIsToldWithAMend: what a command says that came just as the service ended.
func TestStoppedServiceIsToldWithAMend(t *testing.T) {
	for _, err := range []error{daemon.ErrStopped, fmt.Errorf("%w on /x: refused", daemon.ErrNotServed)} {
		if f := explain(err); !strings.Contains(f.Advice, "the same command again") {
			t.Errorf("%v: %q, %q", err, f.Cause, f.Advice)
		}
	}
}
