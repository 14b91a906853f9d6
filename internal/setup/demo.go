package setup

import (
	"bytes"
	"context"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/text"
	"sluice/specs"
)

// The demo's repo: the documents' annotated example, and what its agents write.
//
//go:embed demo
var demoFiles embed.FS

// Names in the demo: its workflow, and the gate that asks a person.
const (
	DemoFlow = "phase-4-search-index"
	demoGate = "XG-2-end"
)

// DemoSpec is the demo's workflow.
func DemoSpec() []byte { return demoFile(DemoFlow + ".yaml") }

// DemoEnv is an environment whose home, state, settings and first programs are in dir.
func DemoEnv(env []string, dir string) []string {
	own, path := []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH"}, ""
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		if name == "PATH" {
			path = value
		}
		return slices.Contains(own, name) || strings.HasPrefix(name, "SLUICE_")
	})
	return append(out, "HOME="+filepath.Join(dir, "home"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+path)
}

// demoOwn are the settings of the demo's person: the built-in veto window is 30s.
const demoOwn = "veto_window: 4s\nnotify: {desktop: false}\n"

// Demo makes the demo's repo in a folder, with all that DemoEnv names beside it.
func Demo(ctx context.Context, dir string, env []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for to, data := range map[string][]byte{
		"repo/.workflow/specs/" + DemoFlow + ".yaml": demoFile(DemoFlow + ".yaml"),
		"repo/.workflow/config.yaml": bytes.ReplaceAll(demoFile("config.yaml"), []byte("@SELF@"),
			[]byte(self)),
		"config/sluice/config.yaml":          []byte(demoOwn),
		"repo/.workflow/.gitignore":          []byte(Ignored),
		"repo/.workflow/" + specs.SchemaFile: specs.Schema(),
		"repo/docs/plans/phase-4-plan.md":    demoFile("plan.md"),
		"repo/phase-4/CLAUDE.md":             demoFile("CLAUDE.md"),
		"home/.keep":                         nil,
	} {
		if err := write(filepath.Join(dir, filepath.FromSlash(to)), data); err != nil {
			return err
		}
	}
	pixi := filepath.Join(dir, "bin", "pixi")
	if err := write(pixi, demoFile("pixi")); err != nil {
		return err
	}
	if err := os.Chmod(pixi, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "-m",
			"a plan"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = filepath.Join(dir, "repo")
		cmd.Env = append(slices.Clone(env), "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fault.Failed("`sluice doctor` checks git", "git %s: %s %s", args[len(args)-1], err, text.Line(string(out)))
		}
	}
	return nil
}
