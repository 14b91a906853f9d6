package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/setup"
	"sluice/internal/workspace"
	"sluice/specs"
	"sluice/specs/graph"
)

func demoCommand(a *app) *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "see a whole run on a temporary repo: no key, no network, under a minute",
		Long: `Creates a repo in a temporary folder and runs a two-step workflow with built-in agents. A reviewer
fails the first tests, they are rewritten, and a veto window opens. Then the code is written, and
the last gate asks you. With --yes, or without a terminal, the demo answers for you.
Its state and settings are in the same folder: nothing of yours is touched.`,
		Example: "sluice demo\nsluice demo --yes --keep /tmp/sluice-demo",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			by := "--yes"
			if !a.Yes && !a.Interactive() {
				a.Yes, by = true, "the demo"
			}
			return runDemo(cmd.Context(), a, keep, by)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "create the repo in `DIR`, a new folder, and keep it")
	return cmd
}

// runDemo plays the demo; by names who answers for the person, if anybody.
func runDemo(ctx context.Context, a *app, keep, by string) (err error) {
	dir := keep
	if keep != "" {
		if dir, err = filepath.Abs(keep); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
			return fault.Failed("name a new folder, as in --keep "+filepath.Join(keep, "sluice-demo"),
				"%s exists already", clean(keep))
		} else if err != nil {
			return err
		}
	} else {
		if dir, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
			return err
		}
		defer func() {
			if rerr := os.RemoveAll(dir); rerr != nil {
				a.Note("%s could not be removed completely: %s", dir, oneLine(rerr.Error()))
			}
		}()
	}
	d := demoApp(a, dir, keep != "")
	if err := setup.Demo(ctx, dir, d.Env); err != nil {
		return err
	}
	demoWelcome(d, by)
	p, err := d.place(ctx)
	if err != nil {
		return err
	}
	var end daemon.RunStatus
	d.ended = func(r daemon.RunStatus) error { end = r; return nil }
	if err := demoRun(ctx, d, p, by); err != nil {
		return err
	}
	return demoEnd(ctx, d, p, end, keep != "")
}

// demoApp returns a copy of the app with its own home, state, settings and PATH in dir.
func demoApp(a *app, dir string, kept bool) *app {
	d := *a
	d.dir = filepath.Join(dir, "repo")
	d.Out = &sharedWriter{w: a.Out}
	if !a.Yes {
		d.Out = a.Out // the screen paints it
	}
	d.Plain, d.throwAway = a.Yes, !kept
	d.Env = setup.DemoEnv(a.Env, dir)
	return &d
}

// sharedWriter lets two goroutines print lines.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Columns is the width of the terminal behind it; 0 = none.
func (s *sharedWriter) Columns() int { return (&console.Console{Out: s.w}).Width() }

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

func demoWelcome(a *app, by string) {
	a.Print("%s", a.Paint(console.Bold, "Created a repo in "+a.dir))
	a.Print("Its workflow, %s/%s.yaml:\n", layout.SpecsDir, setup.DemoFlow)
	if spec, faults := specs.Load("", setup.DemoSpec()); len(faults) == 0 {
		a.Print("%s", indent(strings.TrimSpace(graph.Text(spec, nil, graph.Options{}))))
	}
	a.Print("")
	a.Print("Every role is played by a built-in agent.")
	switch {
	case !a.Yes:
		a.Print("The last gate asks you: p passes, after Enter; f fails, with your words.\n")
	case by == "--yes":
		a.Print("--yes answers for you at the last gate.\n")
	default:
		a.Print("There is no terminal to ask you on, so %s answers for you at the last gate.\n", by)
	}
}

// demoRun runs the workflow. With --yes, or without a terminal, a file answers the gate as a person
// might.
func demoRun(ctx context.Context, a *app, p *workspace.Workspace, by string) error {
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if a.Yes {
		wg.Go(func() {
			if err := setup.AnswerDemo(inner, &a.Console, p, by); err != nil && inner.Err() == nil {
				a.Note("the gate could not be answered: %s", oneLine(err.Error()))
			}
		})
	} else if err := demoPause(ctx, &a.Console); err != nil {
		stop()
		return err
	}
	err := runHere(ctx, a, p, order{workflow: setup.DemoFlow})
	stop()
	wg.Wait()
	return err
}

// demoPause leaves time to read the terminal before the screen covers it.
func demoPause(ctx context.Context, con *console.Console) error {
	con.Print("%s", con.Paint(console.Dim, "Starts in a moment…"))
	health.Wait(ctx, demoReads)
	return ctx.Err()
}

const demoReads = 3 * time.Second

// demoEnd shows the run's outcome, verifies the record, and ends with what to do next. It fits a terminal of 24 lines.
func demoEnd(ctx context.Context, a *app, p *workspace.Workspace, r daemon.RunStatus, kept bool) error {
	outcome := printSummary(ctx, a, p, r)
	a.Title("\nThe record of it")
	if err := auditVerify(ctx, a, nil, nil, "", cluster.Servers{}); err != nil {
		return err
	}
	if kept {
		home := filepath.Dir(a.dir)
		a.Title("\nLook around")
		a.Print(`  cd %s
  export XDG_STATE_HOME=%s XDG_CONFIG_HOME=%s PATH=%s:$PATH
  sluice log last            # what happened
  sluice explain XG-1-2      # why the gate failed, then passed
`, a.dir, filepath.Join(home, "state"), filepath.Join(home, "config"), filepath.Join(home, "bin"))
	} else {
		a.Print("\nThe repo was temporary and is removed; `sluice demo --keep DIR` keeps it.")
		a.Title("\nGo on")
		a.Print(`  sluice init                # the same pipeline in your repo, with real agents
  sluice help                # all commands
`)
	}
	return outcome
}

func demoAgentCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo-agent ROLE", Short: "play a role in the demo", Hidden: true, Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setup.PlayDemo(cmd.Context(), &a.Console, args[0])
		},
	}
}
