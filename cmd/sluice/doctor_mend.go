package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sluice/internal/console"
)

// repair is what doctor can do about a fault, once somebody has said yes.
type repair struct {
	question string
	do       func(ctx context.Context) error
}

// by gives the check with a repair.
func (c check) by(question string, do func(ctx context.Context) error) check {
	c.repair = &repair{question, do}
	return c
}

// mends carries out the repairs that a person says yes to, each asked for by itself, and says whether there was one. Without a
// terminal and without --yes nothing is done, and it is said how.
func (a *app) mends(ctx context.Context, checks []check) (done bool, err error) {
	can := slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.repair == nil || c.State == "ok" })
	if len(can) == 0 {
		return false, nil
	}
	if !a.Yes && !a.Interactive() {
		a.Note("%s can be mended here: `sluice doctor --yes`, or run it in a terminal to be asked", plural(len(can), "fault"))
		return false, nil
	}
	a.Print("")
	for _, c := range can {
		yes, err := a.Ask(c.repair.question)
		if err != nil {
			return done, err
		}
		if !yes {
			continue
		}
		if err := c.repair.do(ctx); err != nil {
			a.Print("%s  %s", a.Paint(console.Red, "not mended"), oneLine(err.Error()))
			continue
		}
		done = true
		a.Print("%s  %s", a.Paint(console.Green, "mended"), c.What)
	}
	return done, nil
}

// bubblewrapPackage is what has the sandbox, and the tool that installs it here; nil where none is known.
func bubblewrapPackage() []string {
	for _, argv := range [][]string{
		{"apt-get", "install", "-y", "--no-install-recommends", "bubblewrap"}, {"dnf", "install", "-y", "bubblewrap"},
		{"pacman", "-S", "--noconfirm", "bubblewrap"}, {"zypper", "--non-interactive", "install", "bubblewrap"}, {"apk", "add", "bubblewrap"},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		if os.Getuid() == 0 {
			return argv
		}
		if _, err := exec.LookPath("sudo"); err == nil {
			return append([]string{"sudo"}, argv...)
		}
	}
	return nil
}

// withBubblewrap adds the repair that installs bubblewrap, where that is what is missing and can be had.
func (a *app) withBubblewrap(c check) check {
	argv := bubblewrapPackage()
	if _, err := exec.LookPath("bwrap"); err == nil || argv == nil {
		return c
	}
	line := strings.Join(argv, " ")
	c.Mend = line
	return c.by("Install bubblewrap, which holds agents ("+line+")?", func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		if _, ok := console.Terminal(a.In); ok {
			cmd.Stdin = os.Stdin // sudo asks for a password
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			return fmt.Errorf("%s: %w: %s", line, err, clean(lines[len(lines)-1]))
		}
		return nil
	})
}
