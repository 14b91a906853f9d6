package personal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/console"
)

// talk returns a console without a terminal, with only these variables, beside a HOME whose git has
// the settings.
func talk(t *testing.T, settings string, env ...string) (con *console.Console, out *strings.Builder) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	out = &strings.Builder{}
	return console.New(append(env, "PATH="+os.Getenv("PATH")), strings.NewReader(""), out, out), out
}

func TestWhichPager(t *testing.T) {
	const set = "[core]\n\tpager = of git\n"
	for _, c := range []struct {
		name, settings, want string
		env                  []string
	}{
		{"none", "", "less", nil},
		{"PAGER", "", "more", []string{"PAGER=more"}},
		{"core.pager", set, "of git", []string{"PAGER=more"}},
		{"GIT_PAGER", set, "of env", []string{"PAGER=more", "GIT_PAGER=of env"}},
		{"none wanted", set, "", []string{"GIT_PAGER="}},
	} {
		con, _ := talk(t, c.settings, c.env...)
		if got, err := pagerOf(t.Context(), con); got != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestNoTerminalNoPager(t *testing.T) {
	con, out := talk(t, "[not git's", "PAGER=false")
	if err := Page(t.Context(), con, func(con *console.Console) { con.Print("plain") }); err != nil || out.String() != "plain\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestWhichEditor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file.diff")
	const set = "[core]\n\teditor = \"sh -c 'echo of git >\\\"$1\\\"' x\"\n"
	say := func(s string) string { return `sh -c 'echo ` + s + ` >"$1"' x` }
	for _, c := range []struct {
		name, settings, want string
		env                  []string
	}{
		{"EDITOR", "", "editor", []string{"TERM=xterm", "EDITOR=" + say("editor")}},
		{"VISUAL", "", "visual", []string{"TERM=xterm", "EDITOR=" + say("editor"), "VISUAL=" + say("visual")}},
		{"VISUAL on a dumb terminal", "", "editor", []string{"TERM=dumb", "EDITOR=" + say("editor"), "VISUAL=" + say("visual")}},
		{"core.editor", set, "of git", []string{"TERM=xterm", "VISUAL=" + say("visual")}},
		{"GIT_EDITOR", set, "of env", []string{"GIT_EDITOR=" + say("of env")}},
	} {
		con, _ := talk(t, c.settings, c.env...)
		err := Edit(t.Context(), con, file)
		if got, _ := os.ReadFile(file); strings.TrimSpace(string(got)) != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
	}
	con, _ := talk(t, "", "TERM=xterm")
	if err := Edit(t.Context(), con, file); err == nil || !strings.Contains(err.Error(), "no terminal") {
		t.Errorf("without any: %v", err)
	}
	con, _ = talk(t, "", "EDITOR=exit 3;")
	if err := Edit(t.Context(), con, file); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("that fails: %v", err)
	}
}

// TestNotInTheCheckout: neither program runs where an agent can leave settings for it.
func TestNotInTheCheckout(t *testing.T) {
	checkout, drafts, home := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(checkout)
	env := []string{"GIT_DIR=" + checkout, "GIT_WORK_TREE=" + checkout, "PWD=" + checkout, "OLDPWD=" + checkout}
	file := filepath.Join(drafts, "a.diff")
	const say = `echo "$PWD $(pwd -P) <$GIT_DIR$GIT_WORK_TREE$OLDPWD>"`
	con, _ := talk(t, "", append(env, "TERM=xterm", `EDITOR=sh -c '`+say+` >"$1"' x`)...)
	if err := Edit(t.Context(), con, file); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != drafts+" "+drafts+" <>\n" {
		t.Errorf("the editor runs in %s", got)
	}
	for dir, set := range map[string]string{home: "HOME=" + home, "/": "HOME=" + home + "/none"} {
		con, _ := talk(t, "", append(env, set)...)
		out := filepath.Join(drafts, "out")
		if err := through(t.Context(), con, say+" >"+out, func(*console.Console) {}); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(out); string(got) != dir+" "+dir+" <>\n" {
			t.Errorf("the pager runs in %s, want %s", got, dir)
		}
	}
}

// TestPagerThatCannotStart: what it would have shown is printed.
func TestPagerThatCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no-program")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for pager, printed := range map[string]bool{file: true, file + ".none": true, "exit 1": false} {
		con, out := talk(t, "")
		err := through(t.Context(), con, pager, func(con *console.Console) { con.Print("shown") })
		if got := strings.HasSuffix(out.String(), "shown\n"); err != nil || got != printed {
			t.Errorf("%s: %q %v", pager, out, err)
		}
	}
}

// TestInterrupted: Ctrl-C ends the context, but not while a program of the person has the terminal.
func TestInterrupted(t *testing.T) {
	ctx, stop := Interrupted(t.Context())
	defer stop()
	back := lend(ctx)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
		t.Fatal("it ended while the terminal was lent")
	case <-time.After(200 * time.Millisecond):
	}
	back()
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
	// Whoever returns the cause is interrupted, as whoever returns the context's error.
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) || why.Error() != "interrupt signal received" {
		t.Error(why)
	}
}
