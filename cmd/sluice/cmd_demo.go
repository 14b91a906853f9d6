package main

import (
	"bytes"
	"context"
	"embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/specs"
)

// The demo's repo: the documents' annotated example, and what its agents write.
//
//go:embed demo
var demoFiles embed.FS

// Names in the demo.
const (
	demoFlow = "phase-4-search-index"
	demoGate = "XG-2-end"
)

func (a *app) demoCommand() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "see a whole run on a throw-away repo: no key, no network, under a minute",
		Long: `Makes a repo in a temporary folder and runs a two-step workflow on it with built-in agents: tests
are written, a reviewer fails them, they are written again, the reviewer agrees and you could veto,
the code is written, and at the last gate you are asked. --yes answers there for you; where there
is no terminal to ask you on, the demo does, and says so.
State and settings of the demo lie in the same folder: nothing of yours is touched.`,
		Example: "sluice demo\nsluice demo --yes --keep /tmp/sluice-demo",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			by := "--yes"
			if !a.Yes && !a.Interactive() {
				a.Yes, by = true, "the demo"
			}
			return a.demo(cmd.Context(), keep, by)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "make it in `DIR`, a new folder, and leave it there")
	return cmd
}

// demo plays it; by says who answers for the person, where somebody does.
func (a *app) demo(ctx context.Context, keep, by string) (err error) {
	dir := keep
	if keep != "" {
		if dir, err = filepath.Abs(keep); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	} else {
		if dir, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
			return err
		}
		defer func() {
			if rerr := os.RemoveAll(dir); rerr != nil {
				a.Note("%s could not be removed whole: %s", dir, oneLine(rerr.Error()))
			}
		}()
	}
	d := a.demoApp(dir, keep != "")
	if err := d.demoRepo(ctx, dir); err != nil {
		return err
	}
	d.demoWelcome(by)
	p, err := d.place(ctx)
	if err != nil {
		return err
	}
	if err := d.demoRun(ctx, p, by); err != nil {
		return err
	}
	return d.demoEnd(ctx, p, dir, keep != "")
}

// demoApp is the same app in a world of its own: home, state, settings and PATH lie in dir.
func (a *app) demoApp(dir string, kept bool) *app {
	d := *a
	d.dir = filepath.Join(dir, "repo")
	d.Out = &sharedWriter{w: a.Out}
	if !a.Yes {
		d.Out = a.Out // the screen paints it
	}
	d.Plain, d.throwAway = a.Yes, !kept
	own := []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH"}
	d.Env = slices.DeleteFunc(slices.Clone(a.Env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(own, name) || strings.HasPrefix(name, "SLUICE_")
	})
	d.Env = append(d.Env, "HOME="+filepath.Join(dir, "home"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+a.Getenv("PATH"))
	return &d
}

// sharedWriter lets two goroutines print lines.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// demoOwn are the settings of the demo's person: the built-in veto window is 30s.
const demoOwn = "veto_window: 4s\nnotify: {desktop: false}\n"

// demoRepo makes the repo.
func (a *app) demoRepo(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for to, data := range map[string][]byte{
		"repo/.workflow/specs/" + demoFlow + ".yaml": demoFile(demoFlow + ".yaml"),
		"repo/.workflow/config.yaml":                 bytes.ReplaceAll(demoFile("config.yaml"), []byte("@SELF@"), []byte(self)),
		"config/sluice/config.yaml":                  []byte(demoOwn),
		"repo/.workflow/.gitignore":                  []byte(ignored),
		"repo/.workflow/" + specs.SchemaFile:         specs.Schema(),
		"repo/docs/plans/phase-4-plan.md":            demoFile("plan.md"),
		"repo/phase-4/CLAUDE.md":                     demoFile("CLAUDE.md"),
		"home/.keep":                                 nil,
	} {
		if err := demoWrite(filepath.Join(dir, filepath.FromSlash(to)), data); err != nil {
			return err
		}
	}
	pixi := filepath.Join(dir, "bin", "pixi")
	if err := demoWrite(pixi, demoFile("pixi")); err != nil {
		return err
	}
	if err := os.Chmod(pixi, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "a plan"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = filepath.Join(dir, "repo")
		cmd.Env = append(slices.Clone(a.Env), "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fault.Failed("`sluice doctor` looks at git", "git %s: %s %s", args[len(args)-1], err, clean(string(out)))
		}
	}
	return nil
}

func (a *app) demoWelcome(by string) {
	a.Print("%s", a.Paint(console.Bold, "A repo was made in "+a.dir))
	a.Print("Its workflow, %s/%s.yaml:\n", specsDir, demoFlow)
	if spec, faults := specs.Load("", demoFile(demoFlow+".yaml")); len(faults) == 0 {
		a.Print("%s", indent(strings.TrimSpace(specs.Text(spec, nil))))
	}
	a.Print("")
	a.Print("Every role is played by a built-in agent.")
	switch {
	case !a.Yes:
		a.Print("At the last gate you are asked: p passes, after Enter; f fails, with your words.\n")
	case by == "--yes":
		a.Print("--yes answers for you at the last gate.\n")
	default:
		a.Print("There is no terminal to ask you on, so %s answers for you at the last gate.\n", by)
	}
}

// demoRun runs the workflow; with --yes, or without a terminal, the gate is answered by a file as a person might.
func (a *app) demoRun(ctx context.Context, p *place, by string) error {
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if a.Yes {
		wg.Go(func() {
			if err := a.demoAnswer(inner, p, by); err != nil && inner.Err() == nil {
				a.Note("the gate could not be answered: %s", oneLine(err.Error()))
			}
		})
	} else if err := a.demoPause(ctx); err != nil {
		stop()
		return err
	}
	err := a.run(ctx, p, order{workflow: demoFlow})
	stop()
	wg.Wait()
	return err
}

// demoPause leaves time to read what the terminal shows before the screen takes it.
func (a *app) demoPause(ctx context.Context) error {
	a.Print("%s", a.Paint(console.Dim, "Starts in a moment…"))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(demoReads):
		return nil
	}
}

const demoReads = 3 * time.Second

// demoAnswer waits for the last gate, shows what one would look at, and passes it.
func (a *app) demoAnswer(ctx context.Context, p *place, by string) error {
	tick := time.NewTicker(lookPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, err := serving(ctx, p)
		if err != nil || s == nil {
			continue // it comes up, or goes
		}
		shown, err := a.demoShow(ctx, p, s)
		s.Close()
		if err != nil {
			return err
		}
		if !shown {
			continue
		}
		file, err := putSignal(p, "", demoGate+"-pass.md", []byte("looks good\n"))
		if err == nil {
			a.Print("\n%s a person would decide now; %s writes %s\n", a.Paint(console.Yellow, "?"), by, shortPath(file))
		}
		return err
	}
}

// demoShow shows the last gate if it asks.
func (a *app) demoShow(ctx context.Context, p *place, s service) (bool, error) {
	st, err := s.Status(ctx, "")
	if err != nil {
		return false, err
	}
	for _, r := range st.Runs {
		for _, g := range gatesOfRun(r) {
			if g.ID != demoGate || g.State != engine.OnHuman {
				continue
			}
			full, err := s.Run(ctx, r.ID)
			if err != nil {
				return false, err
			}
			sh, err := a.gather(ctx, p, s, full, demoGate)
			if err != nil {
				return false, err
			}
			a.Print("")
			a.printShow(sh)
			return true, nil
		}
	}
	return false, nil
}

// demoEnd verifies the record, and says what is there to look at.
func (a *app) demoEnd(ctx context.Context, p *place, dir string, kept bool) error {
	a.title("\nThe record of it")
	if err := a.auditVerify(ctx, nil, nil, ""); err != nil {
		return err
	}
	a.title("\nWhat lies in the repo now")
	if err := a.printTree(p.root); err != nil {
		return err
	}
	a.title("\nGo on")
	if kept {
		a.Print(`  cd %s
  export XDG_STATE_HOME=%s XDG_CONFIG_HOME=%s PATH=%s:$PATH
  sluice log last            # every fact
  sluice explain XG-1-2      # why the gate failed, then passed
  sluice graph last          # the picture, with states
`, a.dir, filepath.Join(dir, "state"), filepath.Join(dir, "config"), filepath.Join(dir, "bin"))
	}
	a.Print(`  sluice init                # in a repo of yours: the same pipeline, with real agents
  sluice doctor              # is all there that it needs?
  sluice help                # all commands`)
	return nil
}

// Bounds of the tree that the demo lists: an attempt's files stay in their folder.
const (
	treeMost  = 60
	treeDepth = 3
)

// printTree lists what is in a folder, as a tree.
func (a *app) printTree(root string) error {
	n := 0
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		if n++; n > treeMost {
			return filepath.SkipAll
		}
		name, depth := d.Name(), strings.Count(rel, string(filepath.Separator))
		deep := d.IsDir() && depth == treeDepth
		switch {
		case deep:
			name += "/ …"
		case d.IsDir():
			name += "/"
		}
		a.Print("  %s%s", strings.Repeat("  ", depth), clean(name))
		if deep {
			return filepath.SkipDir
		}
		return nil
	})
}
