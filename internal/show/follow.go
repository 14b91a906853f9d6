package show

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// Following is which output to print, and how.
type Following struct {
	Run, Step string // "" = whatever works
	Lines     int
	Follow    bool
	Stderr    bool
	Raw       bool // events of built-in agents unchanged

	con  *console.Console
	p    *workspace.Workspace
	runs []daemon.RunStatus // as last seen
	dir  string             // of the launch whose output is printed
	next string             // of the one that is printed after it
	seen map[string]bool    // printed before

	unserved bool // no process serves the repo, and its runs were read since
}

// followPace is how often a process is asked what works now.
const followPace = 500 * time.Millisecond

// Print prints the end of an agent's output. With Follow it prints what is added until the run has ended, or
// nothing serves it, and goes on with the launch that works, of the named step if there is one.
func (f *Following) Print(ctx context.Context, con *console.Console, p *workspace.Workspace) error {
	f.con, f.p, f.seen = con, p, map[string]bool{}
	st, err := p.Status(ctx)
	if err != nil {
		return err
	}
	f.runs = st.Runs
	if f.Run, err = runToTail(st.Runs, f.Run); err != nil {
		return err
	}
	if f.dir, err = f.first(ctx); err != nil || f.dir == "" {
		return err
	}
	for lines := f.Lines; ; lines = tailLines {
		f.seen[f.dir] = true
		if f.Follow && (f.Step == "" || len(f.seen) > 1) {
			f.tell(f.name(f.dir))
		}
		file, say := f.output()
		if f.Follow {
			say = markLookalikes(say)
		}
		if err := Tail(ctx, con, file, lines, f.Follow, say, f.over(ctx)); err != nil || !f.Follow || ctx.Err() != nil {
			f.silent(file)
			return err
		}
		if f.next == "" {
			r := f.run()
			said := r.ID + " " + render.RunState(r)
			if r.Live() {
				said += ": no sluice process serves this repo now; `sluice run " + r.ID + "` continues it"
			}
			f.tell(said)
			return nil
		}
		f.dir, f.next = f.next, ""
	}
}

// tellSign begins the lines of tell.
const tellSign = "── "

// tell says what is printed, beside the output.
func (f *Following) tell(what string) { f.con.Note("%s", f.con.PaintErr(console.Dim, tellSign+what)) }

// markLookalikes returns say with a mark before each line that begins as tell's do: the agent said it.
func markLookalikes(say func(string) []string) func(string) []string {
	return func(raw string) []string {
		lines := say(raw)
		for i, l := range lines {
			rest := strings.TrimLeft(l, "─━═—―")
			if len(l)-len(rest) > len("─") && strings.HasPrefix(rest, " ") {
				lines[i] = "| " + l
			}
		}
		return lines
	}
}

// silent says that an agent which has ended printed nothing.
func (f *Following) silent(file string) {
	size := func(name string) int64 {
		if st, err := os.Stat(NewestPart(name)); err == nil {
			return st.Size()
		}
		return 0
	}
	switch {
	case f.Follow || size(file) > 0 || f.works():
	case f.Stderr || size(filepath.Join(f.dir, "stderr")) == 0:
		f.con.Note("%s printed nothing", f.name(f.dir))
	default:
		f.con.Note("%s printed only errors: --stderr shows them", f.name(f.dir))
	}
}

// output returns the file to print, and what turns its lines into lines for a person.
func (f *Following) output() (file string, say func(string) []string) {
	switch {
	case f.Stderr:
		return filepath.Join(f.dir, "stderr"), PlainLine
	case f.Raw:
		return filepath.Join(f.dir, "stdout"), PlainLine
	}
	return filepath.Join(f.dir, "stdout"), Sayer(f.con, f.dir)
}

// name names the launch of a folder: phase-4-1/X-1.2.
func (f *Following) name(dir string) string {
	if rel, err := filepath.Rel(filepath.Join(f.p.Root, filepath.FromSlash(layout.RunsDir)), dir); err == nil {
		return filepath.ToSlash(rel)
	}
	return dir
}

// pick returns the folder of the launch to print now.
func (f *Following) pick() (string, error) {
	runs := family(f.runs, f.Run, f.Step == "")
	return NewestOutput(f.p.Root, foldersOf(runs), f.Step, atWork(runs))
}

// first returns the launch to begin with. A live run that is followed may have none yet.
func (f *Following) first(ctx context.Context) (string, error) {
	dir, err := f.pick()
	var none *fault.Error
	if !f.Follow || !errors.As(err, &none) || none.Code == fault.ExitUsage || !f.live() {
		return dir, err
	}
	f.tell("no output yet of " + strings.TrimSpace(f.Run+" "+f.Step))
	tick := time.NewTicker(followPace)
	defer tick.Stop()
	for err != nil && f.live() && !f.unserved {
		select {
		case <-ctx.Done():
			return "", nil
		case <-tick.C:
		}
		f.look(ctx)
		dir, err = f.pick()
	}
	return dir, err
}

// over returns what tells Tail that the output is complete: the run has ended, or another launch works instead.
func (f *Following) over(ctx context.Context) func() bool {
	asked := time.Now()
	return func() bool {
		if time.Since(asked) < followPace {
			return false
		}
		asked = time.Now()
		f.look(ctx)
		if !f.works() {
			if dir, err := f.pick(); err == nil && !f.seen[dir] {
				f.next = dir
				return true
			}
		}
		return !f.live() || f.unserved && !f.works()
	}
}

// works reports whether the launch whose output is printed is at work.
func (f *Following) works() bool {
	attempt := f.name(f.dir)
	if base := path.Base(attempt); strings.HasPrefix(base, againPrefix) {
		attempt = path.Dir(attempt)
	}
	return atWork(f.runs)[attempt] && !layout.Ended(f.dir)
}

func (f *Following) run() daemon.RunStatus {
	i := slices.IndexFunc(f.runs, func(r daemon.RunStatus) bool { return r.ID == f.Run })
	if i < 0 { // forgotten
		return daemon.RunStatus{ID: f.Run}
	}
	return f.runs[i]
}

func (f *Following) live() bool { return f.run().Live() }

// look asks the process that serves the repo for the state of its runs. Without one it reads the
// journal once: nothing changes then.
func (f *Following) look(ctx context.Context) {
	s, err := f.p.Serving(ctx)
	if err != nil {
		return
	}
	if s == nil {
		if !f.unserved {
			if st, err := f.p.Status(ctx); err == nil {
				f.runs, f.unserved = st.Runs, true
			}
		}
		return
	}
	defer s.Close()
	f.unserved = false
	if st, err := s.Status(ctx, ""); err == nil {
		f.runs = st.Runs
	}
}
