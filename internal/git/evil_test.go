package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// evil turns a sandbox into an attacker's repo: every key and file that names a program names one
// that leaves a trace.
type evil struct {
	*sandbox
	log    string // the traces
	script string
}

func newEvil(t *testing.T) *evil {
	t.Helper()
	s := newSandbox(t)
	e := &evil{sandbox: s, log: filepath.Join(filepath.Dir(s.dir), "traces"), script: filepath.Join(filepath.Dir(s.dir), "canary")}
	// It logs its caller, and passes its input through, as a filter must (which is called without
	// arguments).
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>%s\n[ $# -gt 0 ] || cat\nexit 0\n", e.log)
	if err := os.WriteFile(e.script, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return e
}

var evilKeys = []string{
	"core.fsmonitor", "gpg.program", "gpg.ssh.program", "diff.external", "diff.evil.command", "diff.evil.textconv",
	"filter.evil.clean", "filter.evil.smudge", "core.sshCommand", "core.editor", "core.pager", "pager.rev-list",
	"pager.diff-tree", "credential.helper", "core.askPass", "core.gitProxy", "sequence.editor", "interactive.diffFilter",
	"merge.evil.driver", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "trailer.x.command",
	"remote.origin.uploadpack", "mergetool.x.cmd",
}

// arm writes the configuration, hooks and attributes. Tests use plain git before it.
func (e *evil) arm() {
	e.t.Helper()
	var b strings.Builder
	for _, key := range evilKeys {
		i := strings.LastIndex(key, ".")
		section, name := key[:i], key[i+1:]
		if kind, sub, ok := strings.Cut(section, "."); ok {
			section = fmt.Sprintf("%s %q", kind, sub)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, e.script)
	}
	hooks := filepath.Join(e.dir, ".git", "hooks")
	fmt.Fprintf(&b, "[core]\n\thooksPath = %s\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true\n", hooks)
	for _, sub := range []string{"rev-list", "cat-file", "for-each-ref", "worktree", "ls-remote", "ls-files", "diff-tree"} {
		fmt.Fprintf(&b, "[alias]\n\t%s = !%s\n", sub, e.script)
	}
	fmt.Fprintf(&b, "[filter \"evilp\"]\n\tprocess = %s\n\trequired = true\n", e.script)
	included := filepath.Join(filepath.Dir(e.dir), "included")
	if err := os.WriteFile(included, []byte(b.String()), 0o644); err != nil {
		e.t.Fatal(err)
	}
	// Also by include: checking the file alone would miss it.
	e.appendTo(".git/config", b.String()+"[include]\n\tpath = "+included+"\n")
	e.appendTo(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
	for _, hook := range []string{
		"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "fsmonitor-watchman",
		"pre-auto-gc", "post-rewrite", "update", "pre-receive", "post-update", "push-to-checkout", "proc-receive",
	} {
		if err := os.MkdirAll(hooks, 0o755); err != nil {
			e.t.Fatal(err)
		}
		if err := os.Symlink(e.script, filepath.Join(hooks, hook)); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *evil) appendTo(name, text string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// traces fails if anything from the repo ran, and names the operation.
func (e *evil) traces(doing string) {
	e.t.Helper()
	b, err := os.ReadFile(e.log)
	if err == nil {
		e.t.Errorf("%s ran the repo's programs:\n%s", doing, b)
		check(e.t, os.Remove(e.log))
	}
}

// touch makes the file look changed by its stat data, so that git would run filters.
func (e *evil) touch(name string) {
	e.t.Helper()
	at := time.Now().Add(-time.Hour)
	check(e.t, os.Chtimes(filepath.Join(e.dir, name), at, at))
}

func TestNothingOfTheReposIsRun(t *testing.T) {
	conform.Rule(t, "4-trust nothing by accident", "fsmonitor, hooks, filters and signatures of the repo stay off")
	e := newEvil(t)
	e.write(".gitattributes", "* filter=evil diff=evil merge=evil\n*.p filter=evilp\n")
	e.write("b.p", "process\n")
	base := e.commit("with attributes")
	signed := e.fakeSigned()
	e.git("update-ref", "refs/heads/signed", signed)
	e.git("worktree", "add", "-q", "-b", "other", filepath.Join(filepath.Dir(e.dir), "other"))
	e.git("remote", "add", "origin", e.dir)
	e.write("sub/new.txt", "new\n")
	e.arm()
	e.write("a.txt", "changed\n")
	e.touch("b.p")

	// The canary works: plain git triggers it.
	e.git("status")
	if _, err := os.Stat(e.log); err != nil {
		t.Fatal("the canary is dead: this test shows nothing")
	}
	check(t, os.Remove(e.log))
	e.touch("b.p")

	r, err := Open(ctx(t), filepath.Join(e.dir, "sub"))
	check(t, err)
	defer func() { check(t, r.Close()) }()
	e.traces("Open")
	refs, err := r.Refs(ctx(t))
	check(t, err)
	e.traces("Refs")
	_, err = r.Worktrees(ctx(t))
	check(t, err)
	e.traces("Worktrees")
	commits, _, err := r.NewCommits(ctx(t), refs, nil, 100)
	check(t, err)
	e.traces("NewCommits")
	if len(commits) != 3 {
		t.Errorf("%d commits, want 3", len(commits))
	}
	made, err := r.AddWorktree(ctx(t), filepath.Join(filepath.Dir(e.dir), "made"), "feat/made")
	check(t, err)
	e.traces("AddWorktree")
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(e.dir), "made", "b.p")); !made || err != nil || string(b) != "process\n" {
		t.Errorf("new worktree: %v %q %v", made, b, err)
	}
	for _, tree := range []string{e.dir, filepath.Join(filepath.Dir(e.dir), "made")} {
		changes, err := r.Changed(ctx(t), tree, base)
		check(t, err)
		e.traces("Changed")
		_, err = r.Unclean(ctx(t), tree, false)
		check(t, err)
		e.traces("Unclean")
		_, _, err = r.Diff(ctx(t), tree, base, 1<<20, Look{})
		check(t, err)
		e.traces("Diff")
		_, err = Digest(ctx(t), tree, changes.Files)
		check(t, err)
		e.traces("Digest")
		_, err = r.Salvage(ctx(t), tree, "run-1/X-1.1", "kept")
		check(t, err)
		e.traces("Salvage")
	}
	_, err = r.AddNote(ctx(t), "sluice", []byte("text\n"))
	check(t, err)
	_, err = r.Notes(ctx(t), "sluice")
	check(t, err)
	e.traces("AddNote")
	url, err := r.RemoteURL(ctx(t), "origin")
	check(t, err)
	_, err = r.LsRemotePulls(ctx(t), url)
	check(t, err)
	e.traces("LsRemotePulls")
}

// An ssh address is used without the repo's ssh command.
func TestSSHCommandOfTheRepo(t *testing.T) {
	conform.Rule(t, "4-trust nothing by accident", "the repo's ssh command is not run")
	e := newEvil(t)
	e.arm()
	r := e.open()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", "/nonexistent") // no real ssh must run
	if _, err := r.LsRemotePulls(ctx(t), "ssh://nobody@localhost/x"); err == nil {
		t.Error("no error from a host that is not there")
	}
	e.traces("LsRemotePulls")
}

// fakeSigned creates a commit with a signature: showing it would start gpg.program.
func (e *evil) fakeSigned() string {
	e.t.Helper()
	tree := e.git("rev-parse", "HEAD^{tree}")
	body := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n fake\n -----END PGP SIGNATURE-----\n\nsigned\n",
		tree, e.git("rev-parse", "HEAD"))
	path := filepath.Join(filepath.Dir(e.dir), "signed")
	check(e.t, os.WriteFile(path, []byte(body), 0o644))
	return e.git("hash-object", "-t", "commit", "-w", path)
}

// A partial clone fetches a missing object as soon as it is accessed, with the repo's ssh command.
func TestMissingObjectIsNotFetched(t *testing.T) {
	e := newEvil(t)
	e.arm()
	e.appendTo(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = prom\n[remote \"prom\"]\n\tpromisor = true\n\turl = ssh://x@localhost/y\n")
	missing := strings.Repeat("12", 20)
	r := e.open()
	commits, _, err := r.NewCommits(ctx(t), map[string]string{"refs/heads/x": missing}, []string{missing}, 10)
	if err != nil || len(commits) != 0 {
		t.Errorf("%v %v", commits, err)
	}
	e.traces("NewCommits")
	if _, err := r.Changed(ctx(t), e.dir, missing); err == nil {
		t.Error("a base that is missing is no error")
	}
	e.traces("Changed")
	// The canary works with plain git.
	cmd := call{args: []string{"cat-file", "-p", missing}, env: []string{"GIT_ALLOW_PROTOCOL=ssh", "GIT_NO_LAZY_FETCH=0"}, limit: smallOutput, timeout: callTime}
	if _, err := r.inRepo(ctx(t), r.common, r.top, cmd); err == nil {
		t.Error("found a missing object")
	}
	if _, err := os.Stat(e.log); err != nil {
		t.Error("the canary is dead: this test shows nothing")
	}
	check(t, os.RemoveAll(e.log))
	cmd.env = nil
	if _, err := r.inRepo(ctx(t), r.common, r.top, cmd); err == nil {
		t.Error("found a missing object")
	}
	e.traces("a look for a missing object in the repo itself")
}

// Nothing reads a submodule's own configuration.
func TestSubmoduleIsNotEntered(t *testing.T) {
	e := newEvil(t)
	inner := newEvil(t)
	e.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "sub")
	base := e.commit("submodule")
	inner.dir = filepath.Join(e.dir, "sub")
	// No switch turns its filter off.
	e.appendTo(".git/modules/sub/config", "[filter \"evil\"]\n\tclean = "+inner.script+"\n")
	e.appendTo(".git/modules/sub/info/attributes", "* filter=evil\n")
	e.write("sub/a.txt", "two\n")
	r := e.open()
	changes, err := r.Changed(ctx(t), e.dir, base)
	check(t, err)
	_, _, err = r.Diff(ctx(t), e.dir, base, 1<<20, Look{})
	check(t, err)
	inner.traces("Changed and Diff")
	_, err = r.FolderTree(ctx(t), e.dir, base, nil)
	check(t, err)
	inner.traces("FolderTree")
	_, err = r.Salvage(ctx(t), e.dir, "run-1/X-1.1", "kept")
	check(t, err)
	inner.traces("Salvage")
	if len(changes.Files) != 0 {
		t.Logf("a dirty submodule is told as %q", changes.Files)
	}
	e.gitIn(inner.dir, "status")
	if _, err := os.Stat(inner.log); err != nil {
		t.Error("the canary is dead: this test shows nothing")
	}
}

// A submodule in a folder's tree is what git add makes of it.
func TestSubmoduleInATree(t *testing.T) {
	inner := newSandbox(t)
	for how, change := range map[string]string{
		"unchanged": "", "dirty": "echo two >sub/a.txt", "moved": "git -C sub commit -q --allow-empty -m more",
		"removed": "rm -r sub", "emptied": "rm -r sub && mkdir sub", "unfilled": "rm sub/.git", "a file": "rm -r sub && echo x >sub",
	} {
		t.Run(how, func(t *testing.T) {
			s := newSandbox(t)
			s.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "sub")
			s.gitIn(filepath.Join(s.dir, "sub"), "config", "user.name", "Ann")
			s.gitIn(filepath.Join(s.dir, "sub"), "config", "user.email", "ann@example.org")
			base := s.commit("submodule")
			cmd := exec.Command("sh", "-ec", change)
			cmd.Dir = s.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			tree, err := s.open().FolderTree(ctx(t), s.dir, base, nil)
			check(t, err)
			s.git("add", "--all")
			if want := s.git("write-tree"); tree != want {
				t.Errorf("%s\nwant\n%s", s.git("ls-tree", tree), s.git("ls-tree", want))
			}
		})
	}
}

// Files that an agent plants to redirect git are ignored, or reported.
func TestPlantedFolders(t *testing.T) {
	e := newEvil(t)
	r := e.open()
	tree := filepath.Join(filepath.Dir(e.dir), "wt")
	_, err := r.AddWorktree(ctx(t), tree, "wt")
	check(t, err)
	other := newEvil(t)
	other.write("a.txt", "other\n")
	foreign := other.commit("foreign")
	other.arm()
	elsewhere := filepath.Join(other.dir, ".git")

	check(t, os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: "+elsewhere+"\n"), 0o644))
	head, err := r.Head(ctx(t), tree)
	if err != nil || head == foreign || head == "" {
		t.Errorf("head %q %v", head, err)
	}
	if changes, err := r.Changed(ctx(t), tree, head); err != nil || len(changes.Files) != 0 {
		t.Error(changes, err)
	}
	other.traces("a planted .git file")

	check(t, os.WriteFile(filepath.Join(e.dir, ".git", "worktrees", "wt", "commondir"), []byte(elsewhere+"\n"), 0o644))
	if head, err := r.Head(ctx(t), tree); err == nil {
		t.Errorf("head %s", head)
	}
	check(t, os.WriteFile(filepath.Join(e.dir, ".git", "commondir"), []byte(elsewhere+"\n"), 0o644))
	if refs, err := r.Refs(ctx(t)); err == nil || !strings.Contains(err.Error(), "leads to another repo") {
		t.Error(refs, err)
	}
	other.traces("a planted commondir")
}
