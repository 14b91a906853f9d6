// Package personal runs a person's own pager and editor in the person's environment, as git does:
// by git's variables and settings, but never by the settings of a repo, which an agent can write.
package personal

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
)

// Page has print write to the person's pager. It writes to con itself if that is no terminal, or if
// there is no pager.
func Page(ctx context.Context, con *console.Console, print func(con *console.Console)) error {
	pager := ""
	if _, terminal := console.Terminal(con.Out); terminal && !con.Plain {
		var err error
		if pager, err = pagerOf(ctx, con); err != nil {
			return err
		}
	}
	if pager == "" || pager == "cat" {
		print(con)
		return nil
	}
	return through(ctx, con, pager, print)
}

// Stay is Page for somebody who comes back to a screen: less stays until they leave it, also with little to
// show. Without a pager nothing is shown.
func Stay(ctx context.Context, con *console.Console, print func(con *console.Console)) error {
	pager, err := pagerOf(ctx, con)
	if err != nil {
		return err
	}
	if pager == "" || pager == "cat" {
		return fault.Failed("set PAGER, or git's core.pager", "you have no pager")
	}
	inner := *con
	if con.Getenv("LESS") == "" {
		inner.Env = append(slices.Clone(con.Env), "LESS=R")
	}
	return through(ctx, &inner, pager, print)
}

// through has print write to a pager. It runs in the person's home: some read settings where they run.
func through(ctx context.Context, con *console.Console, pager string, print func(con *console.Console)) error {
	cmd, back := shell(ctx, con, home(con), pager)
	defer back()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // as git sets them
		if con.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout = con.Out
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("your pager: %w", err)
	}
	inner := *con
	inner.Out, inner.Err = in, in
	print(&inner) // a pager that was left early reads no more
	_ = in.Close()
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == notFound || code == noProgram {
		con.Note("your pager cannot be started (%s): %v", pager, err)
		print(con)
	}
	return nil
}

// How a shell ends that cannot start the program, or does not find it.
const (
	noProgram = 126
	notFound  = 127
)

func pagerOf(ctx context.Context, con *console.Console) (string, error) {
	if v, ok := lookup(con, "GIT_PAGER"); ok {
		return v, nil
	}
	set, err := git.PersonalSetting(ctx, "core.pager")
	if err != nil || set != "" {
		return set, err
	}
	if v, ok := lookup(con, "PAGER"); ok {
		return v, nil
	}
	return "less", nil
}

// Edit opens a file in the person's editor and waits until it is closed. The editor runs in the file's
// folder, in which no agent may write: some read settings where they run.
func Edit(ctx context.Context, con *console.Console, file string) error {
	set, err := git.PersonalSetting(ctx, "core.editor")
	if err != nil {
		return err
	}
	dumb := con.Getenv("TERM") == "" || con.Getenv("TERM") == "dumb"
	visual := con.Getenv("VISUAL")
	if dumb {
		visual = ""
	}
	editor := cmp.Or(con.Getenv("GIT_EDITOR"), set, visual, con.Getenv("EDITOR"))
	if editor == "" {
		if dumb || !con.Interactive() {
			return fault.Misused("set EDITOR, or give comments with --comment FILE:LINE:TEXT",
				"there is no terminal for an editor, and no editor is set")
		}
		editor = "vi"
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	cmd, back := shell(ctx, con, filepath.Dir(file), editor+` "$@"`, editor, file)
	defer back()
	cmd.Stdin, cmd.Stdout = con.In, con.Out
	if con.JSON {
		cmd.Stdout = con.Err
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("your editor (%s): %w", strings.TrimSpace(editor), err)
	}
	return ctx.Err()
}

// shell returns a command of the person's that is given the terminal: until back is called, Ctrl-C is
// for it alone. It runs in dir and knows no repo: an agent writes the settings of one.
func shell(ctx context.Context, con *console.Console, dir, script string,
	args ...string) (cmd *exec.Cmd, back func()) {
	cmd = exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append([]string{"-c", script}, args...)...)
	cmd.Dir, cmd.Stderr = dir, con.Err
	for _, v := range con.Env {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GIT_DIR", "GIT_WORK_TREE", "PWD", "OLDPWD":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PWD="+dir)
	return cmd, lend(ctx)
}

// home returns the person's home, or the top folder if there is none.
func home(con *console.Console) string {
	dir := con.Getenv("HOME")
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || !filepath.IsAbs(dir) {
		return "/"
	}
	return dir
}

func lookup(con *console.Console, name string) (value string, ok bool) {
	for _, v := range con.Env {
		if rest, found := strings.CutPrefix(v, name+"="); found {
			value, ok = rest, true
		}
	}
	return value, ok
}
