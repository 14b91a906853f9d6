package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	cage "sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/journal"
	"sluice/specs"
)

// Sandbox tries the sandbox out as the daemon does. trust is what the settings want of launches.
func Sandbox(ctx context.Context, con *console.Console, mode, trust string) Check {
	if mode == settings.SandboxOff {
		return Warned("sandbox", "set sandbox.mode: auto in your settings",
			"off: nothing keeps an agent from answering a gate")
	}
	self, err := os.Executable()
	if err != nil {
		return Broken("sandbox", "", "%v", err)
	}
	box, err := cage.Find(ctx, self, "")
	const advice = "docs/sandbox.md lists its requirements"
	switch {
	case err == nil:
		return Fine("sandbox", "%s works: an agent cannot answer a gate", box.Program())
	case errors.Is(err, cage.ErrUntried):
		return Broken("sandbox", "fix that, such as a full disk or a missing TMPDIR: nothing is launched until then",
			"%v", err)
	case mode == settings.SandboxOn || trust == engine.TrustSandbox || trust == engine.TrustSigned:
		return WithBubblewrap(con, Broken("sandbox", advice, "%v: the settings require one, so nothing is launched", err))
	}
	return WithBubblewrap(con, Warned("sandbox", advice, "%v: "+text.Unheld, err))
}

// PlainRoot is about a root that is no git checkout, or was none when sluice was first used in it.
// store is where its trees are kept.
func PlainRoot(root, store string) Check {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		return Warned("repo", "remove the .git if an agent made it; if you did, end the runs and remove "+store,
			"%s: there is a .git now, which sluice ignores: it keeps trees in its own store here", root)
	}
	return Fine("repo", "%s, not a git checkout: no branches, worktrees or landing", root)
}

// Writable is about the folders that runs write, in the root and in git's folder common ("" = none).
// Runs make one that is missing.
func Writable(root, common string) []Check {
	dirs := []string{layout.WorkflowDir, layout.SignalsDir, layout.RunsDir, engine.WorkspaceDir}
	for i := range dirs {
		dirs[i] = filepath.Join(root, dirs[i])
	}
	if common != "" {
		dirs = append(dirs, common, filepath.Join(common, "objects"), filepath.Join(common, "refs", "heads"))
	}
	for _, dir := range dirs {
		const write = 2 // W_OK
		if err := syscall.Access(dir, write); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return []Check{Broken("repo", "make it writable (`ls -ld` shows its owner), or run sluice as its owner",
				"%s: %s: runs cannot work here", dir, err)}
		}
	}
	return nil
}

// Schema compares the schema for editors with this sluice's. A repo without one, or with this one, has no check.
func Schema(root string) []Check {
	file := filepath.Join(root, layout.WorkflowDir, specs.SchemaFile)
	want := specs.Schema()
	now, _, err := atomicfile.OpenRegular(root, filepath.Join(layout.WorkflowDir, specs.SchemaFile), 2*int64(len(want)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(now, want) {
		return nil
	}
	stale := Warned("schema", "`rm "+layout.WorkflowDir+"/"+specs.SchemaFile+"`, then `sluice init`",
		"%s is not this version's: editors complete keys by it", layout.ShortPath(file))
	return []Check{stale.WithFix("Write this version's schema for editors?", func(context.Context) error {
		return atomicfile.Write(file, want, 0o644)
	})}
}

// Unignored is about folders of .workflow/ that git does not ignore, though runs fill and empty them; ignore are
// the lines that a .gitignore needs.
func Unignored(root string, folders []string, ignore string) []Check {
	if len(folders) == 0 {
		return nil
	}
	file := layout.WorkflowDir + "/.gitignore"
	check := Warned("ignored", "write these lines to "+file+": "+strings.Join(strings.Fields(ignore), " "),
		"git does not ignore %s: `git add -A` would commit prompts, transcripts and answers", strings.Join(folders, ", "))
	return []Check{check.WithFix("Write them to "+file+"?", func(context.Context) error {
		now, _, err := atomicfile.OpenRegular(root, file, 1<<20)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(now) > 0 && !bytes.HasSuffix(now, []byte("\n")) {
			now = append(now, '\n')
		}
		return atomicfile.Write(filepath.Join(root, file), append(now, ignore...), 0o644)
	})}
}

// Specs loads every spec of the repo.
func Specs(root string) []Check {
	files, err := specs.Find(root)
	if err != nil {
		return []Check{Broken("specs", "make the folder readable", "%s", err)}
	}
	if len(files) == 0 {
		return []Check{Broken("specs", "`sluice init` creates one", "none in %s/", layout.SpecsDir)}
	}
	var out []Check
	good := 0
	for _, f := range files {
		if _, faults := specs.LoadFile(f); len(faults) > 0 {
			out = append(out, Broken("specs", "", "%s%s", faults[0], text.More(len(faults)-1, "fault")))
			continue
		}
		good++
	}
	if len(out) > 0 {
		out[len(out)-1].Advice = "`sluice validate` reports all"
	}
	if good > 0 {
		out = append(out, Fine("specs", "%s valid", text.Plural(good, "spec")))
	}
	return out
}

// Journal verifies the journal in a state folder. moved says where the record of the runs here is, if there is none.
func Journal(state, moved string) Check {
	is, err := journal.Exists(state)
	if err == nil && !is && moved != "" {
		return Warned("journal", "docs/operate.md says how a repo is moved", "none here: %s", moved)
	}
	if err == nil && !is {
		return Fine("journal", "none yet: no run was started here")
	}
	rep, err := journal.Verify(state, journal.Options{})
	if damage, ok := errors.AsType[*journal.Damage](err); ok {
		return Broken("journal", fmt.Sprintf("look at it, then `sluice journal repair --to %d`", damage.Good), "%s", err)
	}
	if err != nil {
		return Broken("journal", "make it readable", "%s", err)
	}
	return Fine("journal", "%s, %s, whole", text.Plural(int(rep.Records), "record"), render.Size(rep.Bytes))
}
