package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Far makes the launches of a repo that workers carry out. It does nothing where there are none.
type Far struct {
	ls *Launches
	of Afar // nil = there are none
}

// On returns the labels that a worker needs for a step: those of its role, and its own, which only
// add to them; none: this machine does it. A command without labels of its own stays here.
func (f Far) On(st *engine.Step) []string {
	on, own := slices.Clone(f.ls.opt.Settings().Role(st.Role()).On), slices.Clone(st.On)
	switch {
	case st.Run != nil && len(own) == 0:
		return nil
	case st.Run != nil:
		own = append(own, Commands)
	}
	for _, label := range own {
		if !slices.Contains(on, label) {
			on = append(on, label)
		}
	}
	return on
}

// Stored returns what a worker has stored.
func (f Far) Stored(ctx context.Context, digest string) (io.ReadCloser, error) {
	return f.of.Get(ctx, digest)
}

// has reports whether a worker makes the launch. One that began before the settings changed stays
// where it is.
func (f Far) has(l Order) bool {
	return f.of != nil && f.of.Knows(l.Key) || len(l.On) > 0 && !layout.IsFile(f.ls.PIDFile(l.Key))
}

// ensure is Launches.Ensure for a launch on a worker. It takes no slot of this machine.
func (f Far) ensure(ctx context.Context, l Order, prepare func() (Process, error)) (end Ended, err error) {
	back, err := f.launch(ctx, l, prepare)
	if ctx.Err() != nil {
		return Ended{}, ctx.Err()
	}
	f.ls.Note(l.Key, "")
	var no *job.Refusal
	if errors.As(err, &no) {
		return Ended{Exit: no.Exit}, nil
	}
	if end, err = f.ended(ctx, l, back); err == nil {
		l.Clock.add(end.Exit.Usage)
	}
	return end, err
}

// ended returns the end of a launch, with what it left where a launch of this machine has it. The
// error is ctx's.
func (f Far) ended(ctx context.Context, l Order, back Back) (Ended, error) {
	ls, end := f.ls, Ended{Exit: back.Exit, Back: &back}
	if back.Output != "" {
		end.Dir = ls.Path(l.Dir)
		err := ls.Persist(ctx, l.Key, func() error { return f.bring(ctx, l, back) })
		if ctx.Err() != nil {
			return Ended{}, ctx.Err()
		}
		if err != nil {
			return Ended{Exit: engine.Exit{Code: -1, Lost: true, Class: engine.ClassInfrastructure, // it is launched again
				Why: "its output could not be brought from its worker: " + err.Error()}}, nil
		}
		end = ls.Told(l.Key, end)
	}
	if len(back.Signals) > 0 {
		f.open(l.Key) // its end may be all that was heard of it
		err := ls.Persist(ctx, l.Key, func() error { return f.hear(l.Key, back.Signals) })
		if ctx.Err() != nil {
			return Ended{}, ctx.Err()
		}
		if err != nil {
			ls.Note(l.Key, err.Error())
		}
	}
	ls.Cage.opt.Inboxes.CloseOwn(l.Key)
	return end, nil
}

// launch has a worker make the launch. Errors of this machine are tried again: the error is a Refusal, or
// ctx's.
func (f Far) launch(ctx context.Context, l Order, prepare func() (Process, error)) (back Back, err error) {
	if f.of == nil {
		return Back{}, job.Fatal("it works on a worker (on: %s), and this daemon has none: start it with --cluster, "+
			"or take `on` out of the step and of its role's settings", strings.Join(l.On, ", "))
	}
	w := Watch{
		Waits: func(why string) { l.Clock.hold(); f.ls.Note(l.Key, why) },
		Hear: func(words []Signal) bool {
			why := ""
			if err := f.hear(l.Key, words); err != nil {
				why = err.Error()
			}
			f.ls.Note(l.Key, why)
			return why == ""
		},
		Began: func() {
			f.ls.Note(l.Key, "")
			l.Clock.begin()
			if l.Agent {
				f.ls.opt.Spending.runs(l.job(), f.ls.Root, f.ls.opt.Now())
			}
			f.open(l.Key)
		},
	}
	order := func() (Sent, error) { return f.order(ctx, l, prepare) }
	if l.Found && !f.of.Knows(l.Key) {
		order = nil
	}
	var no *job.Refusal
	if !f.ls.Retry(ctx, l.Key, func() error {
		back, err = f.of.Launch(ctx, l.Key, l.On, order, w)
		if errors.As(err, &no) {
			return nil
		}
		return err
	}) {
		return Back{}, ctx.Err()
	}
	return back, err
}

// order returns the order of a launch that was not sent yet.
func (f Far) order(ctx context.Context, l Order, prepare func() (Process, error)) (Sent, error) {
	n := launching{ls: f.ls, Order: l, prepare: prepare}
	p, err := n.prepared(ctx)
	if err != nil {
		return Sent{}, err
	}
	if p.Sent == nil {
		return Sent{}, job.Fatal("`on` of its role's settings has changed just now: resume the run")
	}
	s := *p.Sent
	s.Key, s.Dir, s.Idle = l.Key, l.Dir, l.Idle
	return s, nil
}

// open makes the own inbox of a launch on a worker: what is put there is the launch's word.
func (f Far) open(key string) {
	run, _, _ := strings.Cut(key, "/")
	if err := os.MkdirAll(filepath.Join(f.ls.PIDFile(key)+layout.InboxMark, run), 0o700); err != nil {
		f.ls.Note(key, err.Error())
		return
	}
	f.ls.Cage.opt.Inboxes.OpenOwn(key)
}

// heardMark ends the name of the list of signals that were put into the inbox of a worker's launch.
const heardMark = ".heard"

// hear puts signals of a worker's launch into its own inbox, each once. After an error it is called again.
func (f Far) hear(key string, words []Signal) (err error) {
	run, _, _ := strings.Cut(key, "/")
	file := f.ls.PIDFile(key) + heardMark
	had := map[string]string{}  // name -> digest
	_ = layout.Load(file, &had) // none, or torn: what is put there twice is taken in once
	for _, w := range words {
		sum := layout.HexSum(w.Data)
		if !w.fits() || had[w.Name] == sum || had[w.Name] == "" && len(had) >= engine.MostRefused {
			continue
		}
		failed := atomicfile.Write(filepath.Join(f.ls.PIDFile(key)+layout.InboxMark, run, w.Name), w.Data, 0o600)
		if failed == nil {
			had[w.Name] = sum
			failed = layout.Save(file, had)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		err = fmt.Errorf("a signal of its agent: %w", err)
	}
	return err
}

// fits reports whether a signal can be a file of an inbox.
func (w Signal) fits() bool {
	return w.Name != "" && w.Name == filepath.Base(w.Name) && w.Name[0] != '.' && len(w.Name) <= 255 &&
		!strings.Contains(w.Name, "\x00") && len(w.Data) <= MaxSignalBytes
}

// bring writes what a worker's launch left into its folder.
func (f Far) bring(ctx context.Context, l Order, back Back) error {
	ls := f.ls
	if p := back.Program; p.Format != "" { // a command has none
		if !program.Known(p.Format) {
			p.Format = settings.FormatText
		}
		p.Env = nil // of another machine
		if err := p.write(ls, l.Dir, l.Key); err != nil {
			return err
		}
	}
	if back.Open != "" {
		run, _, _ := strings.Cut(l.Key, "/")
		if err := ls.Expose(run, "", "on a worker, "+back.Open); err != nil {
			return err
		}
	}
	in, err := f.of.Get(ctx, back.Output)
	if err != nil {
		return err
	}
	defer in.Close()
	return unpackOutput(ls.Layout, l.Dir, in)
}

// Agent returns what has a worker start the agent or the command, in place of Launches.Agent.
func (f Far) Agent(a Ask, s Sent) (Process, error) {
	ls := f.ls
	if s.Argv = a.Argv; len(a.Argv) > 0 {
		s.EnvOf = a.Who.Role
		return f.sent(a, s)
	}
	name, err := a.speaksIn()
	if err != nil {
		return Process{}, err
	}
	s.Prompt, s.Session = a.Prompt, name
	if a.Try > 0 {
		t := ls.goOn(a, "")
		s.Prompt, s.Resume, s.Base = a.correction(t), t.resume, t.base
	}
	if err := ls.WriteFile(a.Dir+"/prompt.md", []byte(s.Prompt)); err != nil {
		return Process{}, err
	}
	s.Role, s.Schema, s.CostUSD = a.Who.Role, a.Schema, ls.MayCost(a.Job, a.Who.Role)
	return f.sent(a, s)
}

// sent returns a launch that is sent, with what all have.
func (f Far) sent(a Ask, s Sent) (_ Process, err error) {
	j := a.Job
	s.Env = map[string]string{}
	for _, v := range a.Env {
		if s.Env[v.Name], err = v.Value.String(j.Env); err != nil {
			return Process{}, job.Refused("env %s: %v", v.Name, err)
		}
	}
	s.Run, s.Workflow, s.Vars, s.Turn = j.Run, j.RunInfo.Workflow, j.Vars, j.Turn
	if c := j.RunInfo.Child; c != nil {
		s.Task, s.Try = c.Task, c.Try
	}
	return Process{Cwd: a.Cwd, Who: a.Who, Sent: &s}, nil
}

// End ends what workers make under the key, its corrections too. main is how its own launch ended.
// The error is ctx's.
func (f Far) End(ctx context.Context, l Order) (main *Ended, some bool, err error) {
	if f.of == nil {
		return nil, false, nil
	}
	keys, err := keysOf(f.ls.Layout, l.Key, layout.SentMark)
	if err != nil {
		return nil, false, err
	}
	if l.Found && f.has(l) && !slices.Contains(keys, l.Key) {
		keys = append(keys, l.Key)
	}
	for _, key := range keys {
		back, err := f.of.Stop(ctx, key)
		if err != nil {
			return nil, true, err
		}
		if back == nil {
			continue
		}
		some = true
		if key == l.Key {
			end, err := f.ended(ctx, l, *back)
			if err != nil {
				return nil, true, err
			}
			main = &end
		}
	}
	return main, some, nil
}
