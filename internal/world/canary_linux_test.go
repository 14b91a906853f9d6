package world

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// traps are what an agent could leave for a person's git, one shell line each. E is a program in
// the checkout that reports when it runs outside; R is the checkout.
var traps = []string{
	`for k in core.fsmonitor core.pager core.editor core.sshCommand diff.external gpg.program gpg.ssh.program credential.helper core.askPass uploadpack.packObjectsHook core.alternateRefsCommand; do git config $k "$E"; done`,
	`git config log.showSignature true; git config gpg.program "$E"; git config alias.status "!$E"; git config alias.log "!$E"`,
	`for k in filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.command diff.evil.textconv merge.evil.driver; do git config $k "$E"; done; echo '* filter=evil diff=evil merge=evil' >.gitattributes`,
	`g=$(git rev-parse --git-dir); mkdir -p $g/hooks; for h in post-index-change reference-transaction post-checkout fsmonitor-watchman query-watchman; do cp "$E" $g/hooks/$h; done`,
	`printf '[core]\n\tfsmonitor = %s\n[include]\n\tpath = %s/evil.config\n' "$E" "$R" >>"$R/.git/config"`,
	`printf '[core]\n\tfsmonitor = %s\n' "$E" >evil.config; git config include.path "$R/evil.config"; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$E"`,
	`printf '[core]\n\tfsmonitor = %s\n' "$E" >"$R/.git/config.worktree"; printf '[core]\n\tfsmonitor = %s\n' "$E" >>"$R/.git/modules/sub/config"`,
	`mkdir -p "$R/.git/hooks"; cp "$E" "$R/.git/hooks/post-index-change"; cp "$E" "$R/.git/modules/sub/hooks/post-index-change"; echo "* filter=evil" >>"$R/.git/info/attributes"`,
	`rm -rf own; git init -q own; git -C own config core.fsmonitor "$E"; rm -f sub/.git; echo "gitdir: $R/own/.git" >sub/.git; mv -f sub/.git sub/dotgit; mv sub elsewhere`,
	`rm -f linked/.git; echo "gitdir: $R/own/.git" >linked/.git; mkdir -p linked/.git/hooks; mv linked elsewhere-too`,
	`mv .git dotgit; git init -q; git config core.fsmonitor "$E"; rm -rf "$R/.git"; ln -s own/.git "$R/.git"`,
	`git init -q nested; git -C nested config core.fsmonitor "$E"; git -C nested commit -q --allow-empty -m x`,
	`mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/x' >bare/HEAD; printf '[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = %s\n' "$E" >bare/config`,
	`echo "gitdir: $R/bare" >"$R/.git/worktrees/linked/gitdir"; echo "$R/bare" >"$R/.git/commondir"; echo "$R/bare" >"$(git rev-parse --git-dir)/commondir"`,
	`printf '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tupdate = !%s\n\tfsmonitor = %s\n' "$E" "$E" >.gitmodules; git config submodule.sub.update "!$E"; git config diff.submodule log`,
	`git config --global core.fsmonitor "$E"; printf '[core]\n\tfsmonitor = %s\n' "$E" >>"$HOME/.config/git/config"`,
	`t=$(git write-tree); printf 'tree %s\nparent %s\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n' $t $(git rev-parse HEAD) >/tmp/c; git update-ref HEAD $(git hash-object -w -t commit /tmp/c)`,
	`git update-index --fsmonitor; git update-index --split-index; git update-index --untracked-cache; git update-index --assume-unchanged README.md`,
	`echo "$R/own/.git/objects" >>"$R/.git/objects/info/alternates"; echo "$R/own/.git/objects" >>"$(git rev-parse --git-dir)/objects/info/alternates"`,
	`echo x >>README.md; git add -A; git commit -q -m work`,
	`git switch -q -c other; echo y >y; git add y; git commit -q -m other; git stash -q`,
	`echo z >sub/z; echo z >linked/z; echo z >deep/z`,
	`git worktree add -q --detach more; printf '[core]\n\tfsmonitor = %s\n' "$E" >more/.git/config`,
	`rm -rf .git; cp -r own/.git .git; rm -rf sub linked deep`,
}

// TestNothingFiresInAPersonsGit: after a random program of a held agent, a person's git looks at
// every folder, submodule and worktree of the checkout, and runs nothing that the agent left. A
// repository of the agent's own fails the attempt by its name, as a warning for the person.
// SLUICE_CANARIES says how many programs.
func TestNothingFiresInAPersonsGit(t *testing.T) {
	conform.Rule(t, "9-one-tree canaries", "status, diff and log of a person fire nothing, wherever in the checkout")
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_CANARY"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(timesOf(t, "SLUICE_CANARIES", 5)) {
		t.Run(fmt.Sprint("SLUICE_CANARY=", seed+i), func(t *testing.T) { canaries(t, rand.New(rand.NewPCG(seed+i, 1))) })
	}
}

func canaries(t *testing.T, rnd *rand.Rand) {
	b := heldIn(t, `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, next_step: DONE}
`, `c=$(mktemp -d); git init -q $c/s; git -C $c/s commit -q --allow-empty -m s; git submodule --quiet add $c/s sub; mkdir -p deep/er; echo x >deep/er/f
git add -A; git commit -q -m more; git worktree add -q -b linked linked; echo linked/ >>.git/info/exclude`)
	trace := filepath.Join(realPath(t, t.TempDir()), "fired")
	program := "R=" + b.root + "; E=$R/evil.sh; export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.org GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.org\nexec 2>&1\n" +
		"printf '#!/bin/sh\\necho \"$0 $*\" >>" + trace + "\\ncat 2>/dev/null\\nexit 0\\n' >$E; chmod +x $E\n"
	for range 3 + rnd.IntN(8) {
		program += traps[rnd.IntN(len(traps))] + "\n"
	}
	b.script("one", program+"exit 0\n")
	b.sh("git add agents; git commit -q -m agent")
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Code != 0 || ev.Exit.Refused != "" {
		t.Fatalf("%+v", ev.Exit)
	}
	check := b.carry(b.checkJob("A", 1)).Check
	if check.Broken != "" {
		t.Errorf("broken: %s\n%s", check.Broken, program)
	}
	looked := 0
	err := filepath.WalkDir(b.root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case dir != b.root && dir != b.path("sub") && dir != b.path("linked") && ownRepo(dir):
			rel, _ := filepath.Rel(b.root, dir)
			told := strings.Contains(check.Why, rel) || strings.Contains(check.Why, " more") || strings.Contains(check.Why, "commits cannot be taken")
			if check.OK || !told {
				t.Errorf("%s is a repository that nobody is told of: %+v\n%s", dir, check, program)
			}
			return filepath.SkipDir
		}
		for _, args := range [][]string{{"status"}, {"diff"}, {"diff", "HEAD"}, {"log", "-3", "-p", "--show-signature"}, {"status", "--ignored"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+t.TempDir(), "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=1")
			_ = cmd.Run()
			looked++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fired, err := os.ReadFile(trace); err == nil {
		t.Errorf("it fired:\n%s\nafter\n%s", fired, program)
	}
	if looked < 15 {
		t.Errorf("only %d looks", looked)
	}
}

// ownRepo reports whether git would take a folder for a repository.
func ownRepo(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	_, head := os.Lstat(filepath.Join(dir, "HEAD"))
	_, objects := os.Lstat(filepath.Join(dir, "objects"))
	return err == nil || head == nil && objects == nil
}
