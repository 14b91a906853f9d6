package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/text"
)

// run is a run as an agent sees it.
type run struct {
	Run      string `json:"run"`
	For      string `json:"child_of,omitempty"` // of a run that is done for another: its task, and that run
	Workflow string `json:"workflow"`
	Phase    string `json:"phase"` // pending, running, completed, failed, aborted
	Why      string `json:"why,omitempty"`
	Steps    []step `json:"steps,omitempty"`
	Waits    []hold `json:"waits_for,omitempty"`
}

type step struct {
	Step    string `json:"step"`
	Name    string `json:"name,omitempty"`
	State   string `json:"state"`
	Attempt int    `json:"attempt,omitempty"`
	Summary string `json:"summary,omitempty"`
	Gates   []gate `json:"gates,omitempty"`
}

type gate struct {
	Gate  string `json:"gate"`
	Level string `json:"level"` // auto, notify, human
	State string `json:"state,omitempty"`
	Fails int    `json:"fails,omitempty"` // that count

	Routes map[string]int `json:"routes,omitempty"` // how often it took each route back
	Most   int            `json:"most"`             // of each: at which a person is asked
}

// hold is one thing that a run waits for.
type hold struct {
	Kind  string    `json:"kind"`
	Step  string    `json:"step,omitempty"`
	Gate  string    `json:"gate,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Text  string    `json:"text"`
}

// holds returns what a run waits for. How a person would decide is not told: nobody here does.
func holds(r daemon.RunStatus) []hold {
	var out []hold
	for _, w := range r.Waits {
		h := hold{Kind: w.Kind, Step: w.Step, Gate: w.Gate, Until: w.Until, Text: w.Text}
		switch w.Kind {
		case "human":
			h.Text = w.Gate + " for a person: only a person decides it; inform your user"
		case "window":
			h.Text = w.Gate + " for a person's veto, until its window closes; it goes on by itself"
		case "held":
			h.Text = w.Step + " for a person, who has taken it over and alone can hand it back"
		case "paused":
			h.Text = "it is paused: only a person can resume it; inform your user (" + r.Paused + ")"
		}
		out = append(out, h)
	}
	return out
}

func runOf(r daemon.RunStatus, steps bool) run {
	out := run{Run: r.ID, For: r.Child.Title(), Workflow: r.Workflow, Phase: r.Phase, Why: cmp.Or(r.EndWhy, r.Paused),
		Waits: holds(r)}
	if !steps {
		return out
	}
	for _, st := range r.Steps {
		x := step{Step: st.ID, Name: st.Name, State: st.State, Attempt: st.Attempt, Summary: shown(st.Summary)}
		for _, g := range st.Gates {
			if !g.Implicit {
				x.Gates = append(x.Gates,
					gate{Gate: g.ID, Level: g.Level, State: g.State, Fails: g.Count, Routes: g.Routes, Most: g.Max})
			}
		}
		out.Steps = append(out.Steps, x)
	}
	return out
}

func over(r daemon.RunStatus) bool {
	return r.Phase != engine.RunRunning && r.Phase != engine.RunPending
}

type listIn struct {
	Run string `json:"run,omitempty" jsonschema:"the id of a run"`
}

func (s *server) list(ctx context.Context, repo Repo, in listIn) (any, error) {
	if err := known(in.Run); err != nil {
		return nil, err
	}
	st, err := repo.Status(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	out := struct {
		Root   string   `json:"root"`
		Runs   []run    `json:"runs"`
		Left   int      `json:"left_out,omitempty"` // ended long ago
		Unwell []string `json:"unwell,omitempty"`
	}{Root: st.Root, Runs: []run{}, Unwell: st.Health}
	if st.Stalled != "" {
		out.Unwell = append(out.Unwell, "the journal cannot be written: "+st.Stalled)
	}
	runs := st.Runs
	slices.Reverse(runs) // the newest first
	slices.SortStableFunc(runs, func(a, b daemon.RunStatus) int { return cmp.Compare(rank(a), rank(b)) })
	if len(runs) > maxRuns {
		out.Left = len(runs) - maxRuns
		runs = runs[:maxRuns]
	}
	for _, r := range runs {
		out.Runs = append(out.Runs, runOf(r, in.Run != ""))
	}
	return out, nil
}

func rank(r daemon.RunStatus) int {
	if over(r) {
		return 1
	}
	return 0
}

// known refuses what can be no run's id.
func known(run string) error {
	if run != "" && !ids.ValidRun(run) {
		return fmt.Errorf("run %.80q: no run has this id: list names them", run)
	}
	return nil
}

// offer is a step on offer, with all that is needed to do it.
type offer struct {
	Run      string    `json:"run"`
	For      string    `json:"child_of,omitempty"` // of a run that is done for another: its task, and that run
	Step     string    `json:"step"`
	Name     string    `json:"name,omitempty"`
	Attempt  int       `json:"attempt"`
	Role     string    `json:"role,omitempty"`
	Launch   string    `json:"launch"`
	Since    time.Time `json:"since"`
	Claimed  string    `json:"claimed,omitempty"`
	ByPerson bool      `json:"claimed_by_person,omitempty"`
	Worktree string    `json:"worktree"`
	Inputs   []string  `json:"inputs,omitempty"`
	Outputs  []string  `json:"outputs,omitempty"`
	Prompt   string    `json:"prompt,omitempty"`
	File     string    `json:"prompt_file"`
	Done     string    `json:"when_done"`
}

func offerOf(o daemon.Offer) offer {
	return offer{Run: o.Run, For: o.Child.Title(), Step: o.Step, Name: o.Name, Attempt: o.Attempt, Role: o.Role,
		Launch: o.Launch, Since: o.Since,
		Claimed: o.Claimed, ByPerson: o.ByPerson, Worktree: o.Worktree, File: o.Prompt, Done: doneBy(o)}
}

// with returns the offer with its prepared work.
func (o offer) with(work Work) *offer {
	o.Prompt, o.Inputs, o.Outputs = work.Prompt, work.Inputs, work.Outputs
	if len(o.Prompt) > maxPrompt {
		o.Prompt = strings.ToValidUTF8(o.Prompt[:maxPrompt], "") + "\n[cut: read the whole of it in " + o.File + "]"
	}
	return &o
}

// doneBy is how a step says that it is done.
func doneBy(o daemon.Offer) string {
	switch {
	case o.ByPerson:
		return o.Claimed + ", a person, has claimed it and reports it: do not work on it"
	case o.SignalType == engine.SignalCommit:
		return "commit the work with this marker in the message: " + o.Marker
	case o.SignalType == engine.SignalPull:
		return "open the pull request from its branch"
	}
	return fmt.Sprintf("call signal with run %s, step %s, attempt %d (in place of the file that the prompt names)",
		o.Run, o.Step, o.Attempt)
}

type nextIn struct {
	Run   string `json:"run,omitempty" jsonschema:"of this run only"`
	Claim bool   `json:"claim,omitempty" jsonschema:"take it"`
	Wait  int    `json:"wait_seconds,omitempty" jsonschema:"how long to wait until something is on offer (0 to 600)"`
}

// offering is what next tells.
type offering struct {
	Offer *offer  `json:"offer"`
	More  int     `json:"more,omitempty"`    // on offer beside it
	Taken []offer `json:"claimed,omitempty"` // and not signalled yet
	Runs  []run   `json:"runs,omitempty"`    // where nothing is on offer: what they wait for
	Say   string  `json:"say,omitempty"`
}

func (s *server) next(ctx context.Context, repo Repo, in nextIn) (any, error) {
	within, err := wait(in.Wait)
	if err == nil {
		err = known(in.Run)
	}
	if err != nil {
		return nil, err
	}
	var out offering
	var picked daemon.Offer
	err = s.until(ctx, repo, in.Run, within, func() (bool, error) {
		out, picked, err = s.offers(ctx, repo, in.Run)
		return out.Offer != nil || !moves(out), err
	})
	if err != nil || out.Offer == nil {
		return out, err
	}
	if in.Claim {
		if err := s.take(ctx, repo, picked); err != nil {
			return nil, err
		}
		out.Say = "it is yours"
	}
	work, err := s.opt.Work(ctx, picked)
	if err != nil {
		return nil, err
	}
	out.Offer = out.Offer.with(work)
	return out, nil
}

// offers looks what is on offer: the oldest that nobody has claimed is picked.
func (s *server) offers(ctx context.Context, repo Repo, only string) (out offering, picked daemon.Offer, err error) {
	all, err := repo.Offers(ctx)
	if err != nil {
		return out, picked, err
	}
	slices.SortStableFunc(all, func(a, b daemon.Offer) int { return a.Since.Compare(b.Since) })
	for _, o := range all {
		switch {
		case only != "" && o.Run != only:
		case o.Claimed != "":
			out.Taken = append(out.Taken, offerOf(o))
		case out.Offer == nil:
			x := offerOf(o)
			out.Offer, picked = &x, o
		default:
			out.More++
		}
	}
	if out.Offer != nil {
		return out, picked, nil
	}
	st, err := repo.Status(ctx, only)
	if err != nil {
		return out, picked, err
	}
	for _, r := range st.Runs {
		if (only != "" || !over(r)) && len(out.Runs) < maxRuns {
			out.Runs = append(out.Runs, runOf(r, false))
		}
	}
	switch {
	case !slices.ContainsFunc(st.Runs, func(r daemon.RunStatus) bool { return !over(r) }):
		out.Say = "nothing is on offer, and no run is live: you are done"
	case slices.ContainsFunc(out.Taken, func(o offer) bool { return !o.ByPerson }):
		out.Say = "nothing else is on offer: claimed steps wait for their signal. If the claimant of a step is gone, read " +
			"its context, have it done and signal it"
	default:
		out.Say = "nothing is on offer now: see what the runs wait for"
	}
	return out, picked, nil
}

// moves says that something may come to be on offer by itself. A step that the runs have on offer,
// and that is not among the claimed, came on offer after the offers were read.
func moves(out offering) bool {
	free := func(run, step string) bool {
		return !slices.ContainsFunc(out.Taken, func(o offer) bool { return o.Run == run && o.Step == step })
	}
	for _, r := range out.Runs {
		if r.Phase == engine.RunPending {
			return true
		}
		if r.Phase != engine.RunRunning {
			continue
		}
		if len(r.Waits) == 0 || slices.ContainsFunc(r.Waits, func(h hold) bool {
			if h.Kind == "offer" {
				return free(r.Run, h.Step)
			}
			return h.Kind != "human" && h.Kind != "paused" && h.Kind != "parent" && h.Kind != "held"
		}) {
			return true
		}
	}
	return false
}

// find returns a run with all its attempts and rounds, and a step of it. A gate is none.
func (s *server) find(ctx context.Context, repo Repo, id, name string) (daemon.RunStatus, daemon.StepStatus, error) {
	if id == "" || name == "" {
		return daemon.RunStatus{}, daemon.StepStatus{}, fmt.Errorf("give run and step: list names them")
	}
	if err := known(id); err != nil {
		return daemon.RunStatus{}, daemon.StepStatus{}, err
	}
	r, err := repo.Run(ctx, id)
	if err != nil {
		return r, daemon.StepStatus{}, err
	}
	var names []string
	for _, st := range r.Steps {
		if st.ID == name {
			return r, st, nil
		}
		names = append(names, st.ID)
	}
	for _, st := range r.Steps {
		for _, g := range st.Gates {
			if name == g.ID || strings.HasPrefix(name, g.ID+"-") {
				return r, st, fmt.Errorf("%.80q: %s is a gate, which no tool decides: its reviewer does, or a person; name "+
					"the step, %s", name, g.ID, st.ID)
			}
		}
	}
	if !ids.Valid(name) {
		return r, daemon.StepStatus{}, fmt.Errorf("step %.80q is not an id: list names the steps", name)
	}
	mend := "its steps are " + strings.Join(names[:min(len(names), 20)], ", ")
	if near := text.Nearest(name, names); near != "" {
		mend = "did you mean " + near + "?"
	}
	return r, daemon.StepStatus{}, fmt.Errorf("run %s has no step %.80q: %s", r.ID, name, mend)
}

// offered returns the offer of a step; an error where it is not on offer.
func (s *server) offered(ctx context.Context, repo Repo, r daemon.RunStatus,
	st daemon.StepStatus) (daemon.Offer, error) {
	all, err := repo.Offers(ctx)
	if err != nil {
		return daemon.Offer{}, err
	}
	for _, o := range all {
		if o.Run == r.ID && o.Step == st.ID {
			return o, nil
		}
	}
	state := st.State
	switch {
	case !over(r) && (state == engine.Signalled || state == engine.Gating):
		return daemon.Offer{}, fmt.Errorf("step %s of %s has signalled: evaluate returns the result", st.ID, r.ID)
	case over(r):
		state = "its run is " + r.Phase
	case state == engine.Running:
		state = "sluice runs it itself"
	}
	return daemon.Offer{}, fmt.Errorf("step %s of %s is not on offer (%s): next returns what is", st.ID, r.ID, state)
}
