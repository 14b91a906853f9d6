package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/fault"
)

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
			for l := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
				if len(l) > 104 {
					t.Errorf("%s: a line of the help has %d characters", c.CommandPath(), len(l))
				}
			}
			if c.Args == nil {
				t.Errorf("%s takes any arguments", c.CommandPath())
			}
		}
	}
	for want := range strings.FieldsSeq("init validate fmt graph run start demo daemon watch ls status show inbox pass fail veto decide signal next pause resume abort retry log tail explain audit journal config clean doctor notify completion version note takeover handback land") {
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
		{&daemon.Held{Dir: "/s", PID: 7}, fault.ExitServed,
			"the state /s is held by pid 7: only one process serves a repo",
			"use that one: `sluice watch add` adds a repo to a daemon's; or end it: `kill 7`"},
		{errors.New("one: two"), fault.ExitFailed, "one: two", ""},
		{errors.New("a: b: c"), fault.ExitFailed, "a: b: c", ""},
	} {
		f := explain(c.err)
		if f.Code != c.code || f.Cause != c.cause || !strings.HasPrefix(f.Advice, c.mend) || (c.mend == "") != (f.Advice == "") {
			t.Errorf("%v: %+v", c.err, f)
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
		for line := range strings.SplitSeq(c.Example, "\n") {
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
