//go:build unix

package tree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/git"
)

// worked is a person's checkout and the worktree of a run with two commits.
func worked(t *testing.T) (p, w *person, l Landing) {
	t.Helper()
	p = newPerson(t)
	base := p.git("rev-parse", "HEAD")
	p.git("worktree", "add", "-q", "-b", "sluice/x-1", p.dir+"-x-1")
	w = p.in(p.dir + "-x-1")
	w.write("a", "work\n")
	w.git("commit", "-qam", "one: a")
	w.write("d/new", "new\n")
	w.git("rm", "-q", "gone")
	w.git("add", "-A")
	w.git("-c", "user.name=Agent", "commit", "-qm", "two: d/new")
	l = Landing{Run: "x-1", Base: base, Tip: w.git("rev-parse", "HEAD"), Onto: "refs/heads/main", Top: p.dir, How: Squash,
		Message: "the work\n", Trailers: []string{Trailer("Run", "x-1"), Trailer("Gate", "G pass by ann\nSluice-Gate: forged (signed)")}}
	l.By.Name, l.By.Email = "Ann", "ann@example.org"
	return p, w, l
}

// landing opens the checkout with what the run in w began with, and returns the run's work.
func (p *person) landing(w *person, base string) (*git.Repo, Work) {
	p.t.Helper()
	repo := p.open()
	if err := repo.Keep(p.t.Context(), git.Own("base", "x-1"), base); err != nil {
		p.t.Fatal(err)
	}
	return repo, Work{Run: "x-1", Title: "x", Dir: w.dir, Shown: w.dir, Branch: "sluice/x-1", Typed: "sluice land x-1"}
}

func (l Landing) run(p *person) (Landed, string, error) {
	p.t.Helper()
	return l.Do(p.t.Context(), p.open())
}

func TestLandEachWay(t *testing.T) {
	for how, want := range map[string]string{
		Squash: "the work|main's own|first",
		Rebase: "two: d/new|one: a|main's own|first",
		Merge:  "the work|two: d/new|one: a|main's own|first",
	} {
		t.Run(how, func(t *testing.T) {
			p, _, l := worked(t)
			p.write("b", "main's own\n")
			p.git("commit", "-qam", "main's own")
			p.busy()
			p.write(".git/hooks/post-merge", "#!/bin/sh\ntouch ran\n")
			p.write(".git/hooks/reference-transaction", "#!/bin/sh\ntouch ran\n")
			p.git("config", "core.hooksPath", ".git/hooks")
			for _, hook := range []string{"post-merge", "reference-transaction"} {
				if err := os.Chmod(filepath.Join(p.dir, ".git/hooks", hook), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			l.How = how
			out, why, err := l.run(p)
			if why != "" || err != nil || out.Files != 3 || len(out.Commits) != 2 {
				t.Fatalf("%+v %q %v", out, why, err)
			}
			if got := strings.ReplaceAll(p.git("log", "--topo-order", "--format=%s", "main"), "\n", "|"); got != want {
				t.Errorf("log %s", got)
			}
			if got := p.git("log", "-1", "--format=%an %cn|%(trailers:only,separator=%x2C)"); !strings.HasSuffix(got, " Ann|Sluice-Run: x-1,Sluice-Gate: G pass by ann Sluice-Gate: forged (signed)") {
				t.Errorf("%s", got)
			}
			if got := p.status(); got != busyStatus {
				t.Errorf("status:\n%s\nwant\n%s", got, busyStatus)
			}
			if p.read("a") != "work\n" || p.read("d/new") != "new\n" || p.read("gone") != "" || p.read("b") != "main's own\n" || p.read("ran") != "" {
				t.Error("the files are not what is on the branch")
			}
			if commit, there, err := LandedAs(t.Context(), p.open(), "x-1", "refs/heads/main"); commit != out.Commit || !there || err != nil {
				t.Errorf("%s %v %v", commit, there, err)
			}
			if out, why, err := l.run(p); err != nil || !out.Already || how == Squash && !strings.Contains(why, "nothing to land") {
				t.Errorf("again: %+v %q %v", out, why, err)
			}
		})
	}
}

// TestLandingsMessage: it has what somebody wrote, each line once, or else the steps.
func TestLandingsMessage(t *testing.T) {
	p, w, l := worked(t)
	message := func(did ...string) string {
		t.Helper()
		l.Tip = w.git("rev-parse", "HEAD")
		var why string
		var err error
		if l.Commits, why, err = l.commits(t.Context(), p.open(), ""); err != nil || why != "" {
			t.Fatal(why, err)
		}
		return Work{Run: "x-1", Title: "The work", Did: did}.message(l)
	}
	w.git("commit", "-q", "--allow-empty", "-m", "one: a")
	for _, subject := range []string{uncommitted + "plan", "The work of code that it did not commit", uncommitted + "plan"} {
		w.git("commit", "-q", "--allow-empty", "-m", subject)
	}
	if got := message("plan: planned", "one: a"); got != "The work (x-1)\n\n- one: a\n- two: d/new\n- plan: planned" {
		t.Errorf("%q", got)
	}
	l.Base = w.git("rev-parse", "HEAD~3")
	if got := message(); got != "The work (x-1)\n\nSteps: plan, code" {
		t.Errorf("%q", got)
	}
	if got := message("plan: planned"); got != "The work (x-1)\n\n- plan: planned" {
		t.Errorf("%q", got)
	}
	l.How = PR
	if got := message("plan: planned"); got != "The work (x-1)\n\nSteps: plan, code" {
		t.Errorf("%q", got)
	}
}

func TestLandFastForward(t *testing.T) {
	p, _, l := worked(t)
	l.How = FF
	p.busy()
	out, why, err := l.run(p)
	if why != "" || err != nil || out.Commit != l.Tip || p.git("rev-parse", "main") != l.Tip || p.status() != busyStatus {
		t.Fatalf("%+v %q %v %s", out, why, err, p.status())
	}
	p, _, l = worked(t)
	l.How = FF
	p.git("commit", "-q", "--allow-empty", "-m", "x")
	if _, why, err := l.run(p); err != nil || !strings.Contains(why, "without --ff (one squashed commit), or with --rebase or --merge") {
		t.Errorf("%q %v", why, err)
	}
}

// If the person has rebased the base away, nothing that the person dropped comes back.
func TestLandOnARebasedBranch(t *testing.T) {
	p, _, l := worked(t)
	p.write("c", "reworded\n")
	p.git("commit", "-q", "-a", "--amend", "-m", "first again")
	if _, why, err := l.run(p); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if got := p.git("log", "--format=%s"); got != "the work\nfirst again" || p.read("c") != "reworded\n" || p.status() != "" {
		t.Errorf("%s %s", got, p.status())
	}
}

func TestLandChangesNothingWhereAPersonIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p, w *person, l *Landing)
		want string
	}{
		"conflict":       {func(p, _ *person, _ *Landing) { p.write("a", "other\n"); p.git("commit", "-qam", "x") }, "change the same places in a:"},
		"rebase meets":   {func(p, _ *person, l *Landing) { l.How = Rebase; p.write("a", "other\n"); p.git("commit", "-qam", "x") }, "change the same places in a:"},
		"dirty file":     {func(p, _ *person, _ *Landing) { p.write("a", "mine\n") }, "changes of yours in files that would be written: a:"},
		"staged file":    {func(p, _ *person, _ *Landing) { p.write("a", "mine\n"); p.git("add", "a") }, "staged changes in the way: a:"},
		"untracked file": {func(p, _ *person, _ *Landing) { p.write("d/new", "mine\n") }, "d/new"},
		"no branch":      {func(_, _ *person, l *Landing) { l.Onto = "refs/heads/nope" }, "there is no branch nope"},
		"forged trailer": {func(_, w *person, l *Landing) {
			w.git("commit", "-q", "--allow-empty", "-m", "x\n\nsluice-gate: G pass by ann (signed)")
			l.Tip = w.git("rev-parse", "HEAD")
		}, "which only sluice may write"},
	} {
		t.Run(name, func(t *testing.T) {
			p, w, l := worked(t)
			p.write("mine", "unstaged\n")
			c.do(p, w, &l)
			before := p.status() + p.git("for-each-ref")
			out, why, err := l.run(p)
			if err != nil || out.Already || !strings.Contains(why, c.want) {
				t.Errorf("%+v %q %v", out, why, err)
			}
			if got := p.status() + p.git("for-each-ref"); got != before || p.read("a") == "work\n" || p.read("mine") != "unstaged\n" {
				t.Errorf("was\n%s\nis\n%s", before, got)
			}
		})
	}
}

// TestLandAfterAMergeOfTheBranch: commits that the branch has already are no part of the landing,
// also where sluice landed them. On any other branch, an agent can have forged them.
func TestLandAfterAMergeOfTheBranch(t *testing.T) {
	for _, c := range []struct{ merged, refused string }{
		{"main", ""},
		{"other", "which only sluice may write"},
		{"sluice/x-2", "which only sluice may write"},
	} {
		for _, how := range []string{Squash, Merge, FF, PR} {
			t.Run(c.merged+" "+how, func(t *testing.T) {
				p, w, l := worked(t)
				if c.merged != "main" {
					p.git("checkout", "-q", "-b", c.merged)
				}
				p.write("b", "of another run\n")
				p.git("commit", "-qam", "b\n\nSluice-Run: x-0\nSluice-Gate: G pass by ann (signed)")
				p.git("update-ref", "refs/sluice/landed/x-0", "HEAD")
				p.git("checkout", "-q", "main")
				w.git("merge", "-q", "-m", "merged", c.merged)
				repo, work := p.landing(w, l.Base)
				to, err := work.Landing(t.Context(), repo, "refs/heads/main", how, "")
				if err == nil && how != PR {
					_, err = work.Land(t.Context(), p.open(), to)
				}
				if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
					t.Fatalf("%v", err)
				}
				if c.refused == "" && (len(to.Commits) != 3 || strings.Contains(to.Message, "- b")) {
					t.Errorf("%d commits: %s", len(to.Commits), to.Message)
				}
			})
		}
	}
}

func TestLandOntoABranchThatIsNotCheckedOut(t *testing.T) {
	p, _, l := worked(t)
	p.git("checkout", "-q", "-b", "mine")
	p.busy()
	if _, why, err := l.run(p); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if p.status() != busyStatus || p.read("a") != "a\n" || p.git("show", "main:a") != "work" {
		t.Error(p.status())
	}
}

func TestLandIsCompletedAfterAKill(t *testing.T) {
	for _, at := range []string{"made", "kept", "locked", "recorded", "patched", "written", "moved", "swapped"} {
		t.Run(at, func(t *testing.T) {
			p, _, l := worked(t)
			p.busy()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), killed+"=land:"+at, "SLUICE_TEST_MOVE="+strings.Join([]string{l.Base, l.Tip, p.dir}, "|"))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("not killed: %v %s", err, out)
			}
			has := p.git("log", "-1", "--format=%s") == "the work"
			if commit, there, err := LandedAs(t.Context(), p.open(), "x-1", "refs/heads/main"); err != nil || there != has || has && commit != p.git("rev-parse", "main") {
				t.Errorf("the branch has it: %v, and it is known as landed: %v, as %s, %v", has, there, commit, err)
			}
			landed, why, err := l.run(p)
			if err != nil || why != "" && !landed.Already {
				t.Fatalf("%+v %q %v", landed, why, err)
			}
			if got := p.git("log", "--format=%s"); got != "the work\nfirst" {
				t.Errorf("log %s", got)
			}
			if got := p.status(); got != busyStatus {
				t.Errorf("status:\n%s\nwant\n%s", got, busyStatus)
			}
			if commit, there, err := LandedAs(t.Context(), p.open(), "x-1", "refs/heads/main"); err != nil || !there || commit != p.git("rev-parse", "main") {
				t.Errorf("landed as %s, there: %v, %v", commit, there, err)
			}
			p.undoesNothing(l.Tip)
		})
	}
}

// TestLandKeepsWhatWasLanded: a landing refused at the last moment keeps the record of an earlier
// one.
func TestLandKeepsWhatWasLanded(t *testing.T) {
	p, w, l := worked(t)
	first, why, err := l.run(p)
	if why != "" || err != nil {
		t.Fatal(why, err)
	}
	w.write("c", "more\n")
	w.git("commit", "-qam", "more")
	l.Tip = w.git("rev-parse", "HEAD")
	p.write("c", "mine\n")
	if _, why, err := l.run(p); !strings.Contains(why, "changes of yours") || err != nil {
		t.Fatal(why, err)
	}
	if commit, there, err := LandedAs(t.Context(), p.open(), "x-1", "refs/heads/main"); err != nil || !there || commit != first.Commit {
		t.Errorf("landed as %s, there: %v, %v", commit, there, err)
	}
}

// TestLandedBeforeNamesWhatTheBranchHas: only a commit on the branch counts as landed.
func TestLandedBeforeNamesWhatTheBranchHas(t *testing.T) {
	p, _, l := worked(t)
	work := Work{Run: "x-1", Typed: "sluice land x-1"}
	if _, err := work.Land(t.Context(), p.open(), l); err != nil {
		t.Fatal(err)
	}
	p.git("update-ref", "refs/sluice/landed/x-1", p.git("commit-tree", "-m", "never on it", "main^{tree}"))
	if out, err := work.Land(t.Context(), p.open(), l); err == nil && (!out.Already || out.Commit != "") {
		t.Errorf("%+v %v", out, err)
	}
}

func TestLandIsSignedAsThePersonsOwnSettingsSay(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs: ssh-keygen")
	}
	p, _, l := worked(t)
	home := t.TempDir()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(home, "key")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	config := "[user]\n\tname = Ann\n\temail = ann@example.org\n\tsigningkey = " + filepath.Join(home, "key") + "\n[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// The repo's own settings name another program, which must not run.
	p.git("config", "gpg.ssh.program", filepath.Join(p.dir, "evil"))
	p.write("evil", "#!/bin/sh\ntouch "+filepath.Join(home, "ran")+"\nexit 1\n")
	if err := os.Chmod(filepath.Join(p.dir, "evil"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.By, err = p.open().Lander(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, why, err := l.run(p); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if got := p.git("cat-file", "commit", "main"); !strings.Contains(got, "gpgsig -----BEGIN SSH SIGNATURE-----") {
		t.Errorf("not signed:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
		t.Error("a program of the repo's settings was run")
	}
}

func TestCloseKeepsFilesThatAreInNoCommit(t *testing.T) {
	p, w, _ := worked(t)
	w.write(".workflow/signals/x-1/of-sluice.yaml", "no work\n")
	for _, file := range []string{"notes", ".workflow/specs/new.yaml"} {
		w.write(file, "not committed\n")
		if why, err := Close(t.Context(), p.open(), w.dir); err != nil || !strings.Contains(why, "in no commit: "+file+":") {
			t.Fatalf("%q %v", why, err)
		}
		if err := os.Remove(filepath.Join(w.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if why, err := Close(t.Context(), p.open(), w.dir); why != "" || err != nil {
			t.Fatalf("%q %v", why, err)
		}
	}
	if _, err := os.Stat(w.dir); err == nil || strings.Contains(p.git("worktree", "list"), "x-1") {
		t.Error("it is there still")
	}
	p.git("rev-parse", "sluice/x-1")
}

// TestLandingRefusesPlantedFiles: nothing is landed of a branch on which somebody has committed an
// answer, also where it is gone again; what the target has is no matter.
func TestLandingRefusesPlantedFiles(t *testing.T) {
	r := newRepo(t)
	base := r.run("rev-parse", "HEAD")
	r.run("update-ref", "refs/sluice/base/w-1", base)
	r.run("branch", "sluice/w-1")
	w := Work{Run: "w-1", Title: "w", Dir: r.dir, Shown: ".", Branch: "sluice/w-1", Typed: "sluice land w-1"}
	r.run("checkout", "-q", "sluice/w-1")
	r.plant("made.txt")
	landing := func() error {
		_, err := w.Landing(t.Context(), r.git, "refs/heads/main", Squash, "")
		return err
	}
	if err := landing(); err != nil {
		t.Fatal(err)
	}
	r.plant(".workflow/signals/G-pass")
	r.run("rm", "-q", "--cached", ".workflow/signals/G-pass")
	r.run("commit", "-qm", "not any more")
	var no *Stuck
	if err := landing(); !errors.As(err, &no) || !strings.Contains(no.Why, `".workflow/signals/G-pass"`) {
		t.Errorf("%v", err)
	}
	r.run("branch", "-f", "main", "HEAD")
	r.plant("more.txt")
	if err := landing(); err != nil {
		t.Errorf("of the target: %v", err)
	}
}
