package forge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/forge"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

// hub is the repo of a stub, by the real gh.
func hub(t *testing.T, more ...string) (*forge.Hub, *forgestub.Forge) {
	t.Helper()
	f, env := forgestub.Start(t)
	repo, err := forge.ParseRepo(f.URL())
	if err != nil {
		t.Fatal(err)
	}
	return forge.Open(repo, forge.Options{Env: append(env, more...), Dir: t.TempDir(), Time: 20 * time.Second}), f
}

func TestFaults(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge faults", "401, 403, 404, 429, 5xx and other answers are told apart, each with what to do")
	h, f := hub(t)
	for _, c := range []struct {
		x      forgestub.Fault
		kind   forge.Kind
		passes bool
		says   string
	}{
		{forgestub.Fault{Status: 401}, forge.NoLogin, false, "gh auth login"},
		{forgestub.Fault{Status: 403}, forge.Forbidden, false, "write access"},
		{forgestub.Fault{Status: 404}, forge.Missing, false, "git remote get-url origin"},
		{forgestub.Fault{Status: 422}, forge.Refused, false, "look"},
		{forgestub.Fault{Status: 500}, forge.Away, true, ""},
		{forgestub.Fault{Status: 503}, forge.Away, true, ""},
	} {
		c.x.Path = "pulls/7"
		f.Spoil(c.x)
		_, err := h.Pull(t.Context(), 7)
		f.Heal()
		got := forge.FaultOf(err)
		if got == nil || got.Kind != c.kind || got.Passes() != c.passes || !strings.Contains(got.Advice(), c.says) {
			t.Errorf("HTTP %d: %v", c.x.Status, err)
		}
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge rate limit", "no call is made before the forge allows it again")
	for _, status := range []int{http.StatusTooManyRequests, http.StatusForbidden} {
		h, f := hub(t)
		f.Spoil(forgestub.Fault{Path: "user", Status: status, Header: forgestub.M{"Retry-After": "90"}, Times: 1})
		_, err := h.Me(t.Context())
		if got := forge.FaultOf(err); got == nil || got.Kind != forge.Busy || got.Wait != 90*time.Second {
			t.Fatalf("%d: %v", status, err)
		}
		before := len(f.Asked())
		_, err = h.Me(t.Context())
		if got := forge.FaultOf(err); got == nil || got.Kind != forge.Busy || got.Wait < 80*time.Second {
			t.Errorf("%d, again: %v", status, err)
		}
		if n := len(f.Asked()); n != before {
			t.Errorf("%d: asked again: %v", status, f.Asked())
		}
	}
}

func TestHangs(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge limits", "a call ends in time, and an answer has a limit")
	h, f := hub(t)
	h = forge.Open(h.Repo, forge.Options{Env: env(t, f), Dir: t.TempDir(), Time: time.Second})
	f.Spoil(forgestub.Fault{Path: "user"})
	began := time.Now()
	if _, err := h.Me(t.Context()); !forge.Is(err, forge.Hangs) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Me(ctx); err == nil || forge.FaultOf(err) != nil {
		t.Errorf("a caller that gave up: %v", err)
	}
}

func env(t *testing.T, f *forgestub.Forge) []string {
	t.Helper()
	more, err := f.Environ(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, more...)
}

func TestNoGH(t *testing.T) {
	t.Parallel()
	h, _ := hub(t, "PATH="+t.TempDir())
	if _, err := h.Me(t.Context()); !forge.Is(err, forge.NoGH) {
		t.Error(err)
	}
	h, f := hub(t)
	bare := slices.DeleteFunc(env(t, f), func(kv string) bool { return strings.HasPrefix(kv, "GH_ENTERPRISE_TOKEN") })
	h = forge.Open(h.Repo, forge.Options{Env: bare, Dir: t.TempDir()})
	if _, err := h.Me(t.Context()); !forge.Is(err, forge.NoLogin) {
		t.Errorf("without a token: %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"nothing":  "#!/bin/sh\nexit 0\n",
		"no JSON":  "#!/bin/sh\nprintf 'HTTP/2.0 200 OK\\r\\n\\r\\n<html>'\n",
		"no reply": "#!/bin/sh\nprintf 'HTTP/1.1 200 OK\\n'\n",
		"too much": "#!/bin/sh\nprintf 'HTTP/1.1 200 OK\\n\\n'; head -c 5000000 /dev/zero\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		h := forge.Open(forge.Repo{Host: "h", Owner: "o", Name: "n"},
			forge.Options{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}, Dir: dir})
		_, err := h.Me(t.Context())
		if got := forge.FaultOf(err); got == nil || got.Kind != forge.Odd && got.Kind != forge.TooMuch {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLongList: long texts of strangers hide nothing that comes after them. A list beyond the limits is a fault, never
// a shorter list.
func TestLongList(t *testing.T) {
	t.Parallel()
	_, f := hub(t)
	h := forge.Open(forge.Repo{Host: "h", Owner: forgestub.Owner, Name: forgestub.Name}, forge.Options{Run: f.GH})
	comments := func(n int, body string) {
		for range n {
			f.Comment(1, "mallory", body)
		}
	}
	most := strings.Repeat("x", 65536)
	comments(130, "x")
	comments(70, most)
	last := f.Comment(1, "ann", "/sluice")
	all, err := h.Comments(t.Context(), 1)
	if err != nil || len(all) != 201 || all[200].ID != last || all[130].Body != most {
		t.Fatalf("%d comments: %v", len(all), err)
	}
	for i, c := range all[1:] {
		if c.ID != all[i].ID+1 {
			t.Fatalf("comment %d follows %d", c.ID, all[i].ID)
		}
	}
	comments(600, most)
	before := len(f.Asked())
	if all, err := h.Comments(t.Context(), 1); !forge.Is(err, forge.TooMuch) || len(all) > 0 || len(f.Asked())-before > 102 {
		t.Errorf("%d comments in %d calls: %v", len(all), len(f.Asked())-before, err)
	}
	for range 1000 {
		f.Comment(2, "mallory", "x")
	}
	if all, err := h.Comments(t.Context(), 2); !forge.Is(err, forge.TooMuch) || len(all) > 0 {
		t.Errorf("%d comments: %v", len(all), err)
	}
}

// TestCut: half an answer is none, and no later call is told that it has not changed.
func TestCut(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge cut", "an answer that did not arrive whole is asked for again, and is not kept for conditional requests")
	h, f := hub(t)
	f.Spoil(forgestub.Fault{Path: "user", Status: forgestub.Cuts, Times: 1})
	if _, err := h.Me(t.Context()); !forge.Is(err, forge.Away) {
		t.Errorf("half an answer: %v", err)
	}
	if me, err := h.Me(t.Context()); me != forgestub.Me || err != nil {
		t.Errorf("after it: %q %v", me, err)
	}
}

// TestMe: gh may be logged in as somebody else at any time.
func TestMe(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge me", "gh's own account is the one that it is logged in as now")
	login := "ann"
	h := forge.Open(forge.Repo{Host: "h", Owner: "o", Name: "n"}, forge.Options{Run: func(_ context.Context, _ []string, _ []byte, out io.Writer) error {
		_, err := fmt.Fprintf(out, "HTTP/1.1 200 OK\r\n\r\n{\"login\": %q}", login)
		return err
	}})
	for _, login = range []string{"ann", "bob"} {
		if me, err := h.Me(t.Context()); me != login || err != nil {
			t.Errorf("logged in as %s: %q %v", login, me, err)
		}
	}
}

func TestPulls(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge fork", "a pull request of a fork is not found, whatever its branch is called")
	h, f := hub(t)
	push(t, f, "main")
	push(t, f, "sluice/x-1")
	f.Fork("mallory", "sluice/x-1")
	if got, err := h.PullsFrom(t.Context(), "sluice/x-1"); err != nil || len(got) != 0 {
		t.Fatalf("%v %v", got, err)
	}
	p, err := h.Create(t.Context(), "sluice/x-1", "main", "T", "B", true)
	if err != nil || p.Number != 2 || !p.Open || !p.Draft || p.Fork || p.Head == "" || p.Base != "main" {
		t.Fatalf("%+v %v", p, err)
	}
	if _, err := h.Create(t.Context(), "sluice/x-1", "main", "T", "B", true); !forge.Is(err, forge.Refused) {
		t.Errorf("a second one: %v", err)
	}
	if err := h.Ready(t.Context(), p); err != nil {
		t.Error(err)
	}
	if p, err = h.Pull(t.Context(), 2); err != nil || p.Draft {
		t.Errorf("%+v %v", p, err)
	}
	f.Merge(2, "bob")
	if p, err = h.Pull(t.Context(), 2); err != nil || p.Open || !p.Merged || p.By != "bob" || p.As == "" {
		t.Errorf("%+v %v", p, err)
	}
	f.Reject(1, "carl")
	if by, err := h.ClosedBy(t.Context(), 1); err != nil || by != "carl" {
		t.Error(by, err)
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	h, f := hub(t)
	sha := push(t, f, "b")
	f.Check(sha, "build", "success", "")
	f.Check(sha, "test", "failure", strings.Repeat("x\n", 10_000)+"the end\n")
	f.Check(sha, "slow", "", "")
	got, err := h.Checks(t.Context(), sha)
	if err != nil || len(got) != 3 || got[0].State != forge.Green || got[1].State != forge.Red || got[2].State != forge.Pending {
		t.Fatalf("%+v %v", got, err)
	}
	log, err := h.JobLog(t.Context(), got[1].Job, 100)
	if err != nil || len(log) > 100 || !strings.HasSuffix(log, "the end\n") {
		t.Errorf("%q %v", log, err)
	}
	if none, err := h.Checks(t.Context(), strings.Repeat("0", 40)); err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}

func TestIssues(t *testing.T) {
	t.Parallel()
	h, f := hub(t)
	f.Issue(5, forgestub.Issue{Title: "Read dates", Author: "eve", Label: "agent", Assignee: forgestub.Me, Association: "NONE"})
	f.Issue(6, forgestub.Issue{Title: "Other", Author: "ann", Label: "agent", Assignee: "ann", Association: "MEMBER"})
	got, err := h.Issues(t.Context(), []string{"agent"}, "me")
	if err != nil || len(got) != 1 || got[0].Number != 5 || got[0].Belongs || got[0].Author != "eve" || got[0].Labels[0] != "agent" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestMayWrite(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge may write", "somebody may write to the repo only where the forge says so now: not with read access, not a removed account or an app, not at any fault")
	h, f := hub(t)
	for who, may := range map[string]string{"root": "admin", "keeper": "maintain", "bob": "write", "reader": "read", "outsider": "none", "ghost": ""} {
		f.Permit(who, may)
	}
	for who, want := range map[string]bool{"root": true, "keeper": true, "bob": true, "Bob": true, "reader": false, "outsider": false,
		"ghost": false, "nobody": false, "": false, "bot[bot]": false, "bob/../root": false, "..": false} {
		if got, err := h.MayWrite(t.Context(), who); got != want || err != nil {
			t.Errorf("%q: %v %v", who, got, err)
		}
	}
	for _, status := range []int{401, 403, 429, 500, forgestub.Cuts, forgestub.Drops} {
		f.Spoil(forgestub.Fault{Path: "permission", Status: status, Header: forgestub.M{"Retry-After": "0"}})
		if got, err := h.MayWrite(t.Context(), "root"); got || err == nil {
			t.Errorf("%d: %v %v", status, got, err)
		}
		f.Heal()
		h = forge.Open(h.Repo, forge.Options{Env: env(t, f), Dir: t.TempDir()})
	}
	says := func(login string) *forge.Hub { // who may do anything, whoever is asked for
		return forge.Open(h.Repo, forge.Options{Run: func(_ context.Context, _ []string, _ []byte, out io.Writer) error {
			_, err := fmt.Fprintf(out, "HTTP/1.1 200 OK\r\n\r\n{\"permission\": \"admin\", \"user\": {\"login\": %q}}", login)
			return err
		}})
	}
	if got, err := says("eve").MayWrite(t.Context(), "bob"); got || err != nil {
		t.Errorf("an answer about somebody else: %v %v", got, err)
	}
	for _, who := range []string{"", "..", "bob/../root", "bob?x", "{owner}", "bot[bot]"} {
		if got, err := says(who).MayWrite(t.Context(), who); got || err != nil {
			t.Errorf("%q: %v %v", who, got, err)
		}
	}
	f.Permit("bob", "read")
	if got, err := h.MayWrite(t.Context(), "bob"); got || err != nil {
		t.Errorf("since it was taken from bob: %v %v", got, err)
	}
}

// push puts a commit on a branch of the stub, and returns it.
func push(t *testing.T, f *forgestub.Forge, branch string) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "c"},
		{"push", "-q", f.Bare, "HEAD:refs/heads/" + branch}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	out, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestParseRepo(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://github.com/acme/dates.git":       "github.com acme/dates",
		"https://me:pw@forge.test:8443/acme/d.x/": "forge.test:8443 acme/d.x",
		"ssh://git@forge.test:22/acme/dates.git":  "forge.test acme/dates",
		"git@github.com:acme/dates.git":           "github.com acme/dates",
		"ssh://git@ssh.github.com:443/a/b":        "github.com a/b",
	} {
		if got, err := forge.ParseRepo(address); err != nil || got.Host+" "+got.String() != want {
			t.Errorf("%s: %v %v", address, got, err)
		}
	}
	for _, address := range []string{"", "/srv/dates.git", "file:///srv/a/b", "https://h/only", "https://h/a/b/c", "https://h/../b",
		"http://h/a/b", "C:\\a\\b", "git@h:a"} {
		if got, err := forge.ParseRepo(address); err == nil {
			t.Errorf("%s: %v", address, got)
		}
	}
}
