package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"sluice/daemon"
	"sluice/engine"
)

type contextIn struct {
	Run  string `json:"run" jsonschema:"the id of the run"`
	Step string `json:"step,omitempty" jsonschema:"the id of the step; without it the result is the run's spec"`
}

// failure is a round that failed, or that took a route.
type failure struct {
	Gate     string `json:"gate"`
	Round    int    `json:"round"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	By       string `json:"by,omitempty"` // reviewer, criterion, human
	Outcome  string `json:"outcome,omitempty"`
	Feedback string `json:"feedback,omitempty"`
	// of what a person decided: what was said before, by the reviewer or the machine
	Said     string          `json:"said,omitempty"`
	Findings json.RawMessage `json:"findings,omitempty"`
	Comments json.RawMessage `json:"comments,omitempty"` // a person's, by file and line
}

func failureOf(id string, q engine.Round) failure {
	f := failure{Gate: id, Round: q.N, Step: q.Step, Attempt: q.Attempt, By: q.ByKind, Outcome: q.Outcome,
		Feedback: shown(q.Feedback), Said: shown(q.Said)}
	if len(q.Findings) <= maxShown {
		f.Findings = q.Findings
	}
	if len(q.Comments) <= maxShown {
		f.Comments = q.Comments
	}
	return f
}

// failures are the newest of a run, and routes the newest rounds that took a route by its name,
// which is no failure; both oldest first.
func failures(r daemon.RunStatus) (failed, routes []failure) {
	type refusal struct {
		gate  string
		round engine.Round
	}
	var all []refusal
	for _, x := range r.Steps {
		for _, g := range x.Gates {
			for _, q := range g.Rounds {
				if q.State == engine.Refused || q.State == engine.ByRoute ||
					q.State == engine.Undone && q.Outcome != "" && q.Outcome != engine.OutcomePass {
					all = append(all, refusal{g.ID, q})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b refusal) int { return cmp.Compare(a.round.Seq, b.round.Seq) })
	for _, x := range all {
		if x.round.Route != "" {
			routes = append(routes, failureOf(x.gate, x.round))
		} else {
			failed = append(failed, failureOf(x.gate, x.round))
		}
	}
	return failed[max(len(failed)-maxFailed, 0):], routes[max(len(routes)-maxFailed, 0):]
}

func (s *server) context(ctx context.Context, repo Repo, in contextIn) (any, error) {
	if err := known(in.Run); err != nil {
		return nil, err
	}
	if in.Step == "" {
		source, err := repo.Spec(ctx, in.Run)
		return map[string]string{"run": in.Run, "spec": source}, err
	}
	r, st, err := s.find(ctx, repo, in.Run, in.Step)
	if err != nil {
		return nil, err
	}
	out := struct {
		Run      string    `json:"run"`
		Step     step      `json:"step"`
		Offer    *offer    `json:"offer,omitempty"`
		Failures []failure `json:"failures,omitempty"` // of the whole run: the newest, oldest first
		// rounds that sent the work on by a name, which is their outcome: as well
		Routes  []failure                  `json:"routes,omitempty"`
		Answers map[string]json.RawMessage `json:"answers,omitempty"` // by step
		Vars    map[string]any             `json:"vars,omitempty"`
	}{Run: r.ID, Vars: r.Vars, Answers: map[string]json.RawMessage{}}
	one := r
	one.Steps = []daemon.StepStatus{st}
	out.Step = runOf(one, true).Steps[0]
	room := maxAnswers
	for _, x := range r.Steps {
		if n := len(x.Attempts); n > 0 && len(x.Attempts[n-1].Answer) > 0 && len(x.Attempts[n-1].Answer) <= room {
			out.Answers[x.ID] = x.Attempts[n-1].Answer
			room -= len(x.Attempts[n-1].Answer)
		}
	}
	out.Failures, out.Routes = failures(r)
	o, err := s.offered(ctx, repo, r, st)
	if err != nil {
		return out, nil //nolint:nilerr // it is not on offer: what there is to know of it all the same
	}
	work, err := s.opt.Work(ctx, o)
	if err != nil {
		return nil, err
	}
	out.Offer = offerOf(o).with(work)
	return out, nil
}
