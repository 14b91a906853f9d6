package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"sluice/daemon"
	"sluice/engine"
	"sluice/signals"
)

// via is how what comes from here is known in the journal.
const via = engine.ViaMCP

type claimIn struct {
	Run     string `json:"run" jsonschema:"the id of the run"`
	Step    string `json:"step" jsonschema:"the id of the step"`
	Attempt int    `json:"attempt,omitempty" jsonschema:"its attempt, as next returned it"`
}

func (s *server) claim(ctx context.Context, repo Repo, in claimIn) (any, error) {
	o, err := s.meant(ctx, repo, in)
	if err == nil {
		err = s.take(ctx, repo, o)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"claimed": true, "run": o.Run, "step": o.Step, "attempt": o.Attempt, "when_done": doneBy(o)}, nil
}

// meant finds the offer that is named.
func (s *server) meant(ctx context.Context, repo Repo, in claimIn) (daemon.Offer, error) {
	r, st, err := s.find(ctx, repo, in.Run, in.Step)
	if err != nil {
		return daemon.Offer{}, err
	}
	o, err := s.offered(ctx, repo, r, st)
	if err == nil && in.Attempt != 0 && in.Attempt != o.Attempt {
		err = fmt.Errorf("attempt %d of %s is not on offer: attempt %d is", in.Attempt, o.Step, o.Attempt)
	}
	return o, err
}

// take claims an offer. A claim that cannot count is not submitted: each leaves a fact.
func (s *server) take(ctx context.Context, repo Repo, o daemon.Offer) error {
	if o.Claimed != "" {
		return fmt.Errorf("not taken: %s.%d was taken by %s: next returns what is on offer", o.Step, o.Attempt, o.Claimed)
	}
	done, err := repo.Do(ctx, engine.Claimed{Run: o.Run, Step: o.Step, N: o.Attempt}, via)
	if err == nil && done.Ignored != "" {
		err = fmt.Errorf("not taken: %s: next returns what is on offer", done.Ignored)
	}
	return err
}

type signalIn struct {
	Run      string          `json:"run"`
	Step     string          `json:"step"`
	Attempt  int             `json:"attempt"`
	Status   string          `json:"status"`
	Summary  string          `json:"summary,omitempty"`
	Question string          `json:"question,omitempty"`
	Options  []string        `json:"options,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// signalSchema is of signalIn. It is written out because its answer is any JSON, byte for byte.
const signalSchema = `{"type": "object", "additionalProperties": false,
	"required": ["run", "step", "attempt", "status"], "properties": {
	"run": {"type": "string", "description": "the id of the run"},
	"step": {"type": "string", "description": "the id of the step"},
	"attempt": {"type": "integer", "description": "its attempt, as next returned it"},
	"status": {"type": "string", "description": "done, failed or blocked"},
	"summary": {"type": "string", "description": "what was done, or why it failed"},
	"question": {"type": "string", "description": "what a person is asked, where it is blocked"},
	"options": {"type": "array", "items": {"type": "string"}, "description": "the answers there could be to the question"},
	"answer": {"description": "the structured answer, where the prompt wants one"}}}`

// signal has the word of a step taken in: as a signal file of the same content would be, but only for
// an attempt on offer that an agent has claimed.
func (s *server) signal(ctx context.Context, repo Repo, in signalIn) (any, error) {
	word, err := in.sentinel()
	if err != nil {
		return nil, err
	}
	o, err := s.meant(ctx, repo, claimIn{in.Run, in.Step, in.Attempt})
	if err != nil {
		return nil, err
	}
	switch {
	case o.SignalType != engine.SignalFile:
		return nil, fmt.Errorf("step %s is signalled in another way: %s", o.Step, doneBy(o))
	case o.Claimed == "":
		return nil, fmt.Errorf("%s.%d was not claimed: claim it, have it done, then signal it", o.Step, o.Attempt)
	case o.ByPerson:
		return nil, fmt.Errorf("%s.%d is not yours: %s", o.Step, o.Attempt, doneBy(o))
	}
	done, err := repo.Do(ctx, engine.FileSeen{Name: filepath.Base(o.Signal), Dir: o.Run, Sentinel: word}, via)
	if err != nil {
		return nil, err
	}
	if done.Ignored != "" {
		return nil, fmt.Errorf("it does not count: %s", done.Ignored)
	}
	return map[string]any{"taken": true, "run": o.Run, "step": o.Step, "attempt": o.Attempt, "status": word.Status,
		"say": "call evaluate to wait for the verdict of its gate"}, nil
}

// sentinel checks the word as that of a file is checked.
func (in signalIn) sentinel() (*engine.Sentinel, error) {
	if err := known(in.Run); err != nil {
		return nil, err
	}
	said := in.Status
	status, ok := signals.Status(said)
	in.Status = status
	switch {
	case in.Attempt < 1:
		return nil, fmt.Errorf("attempt %d: give the attempt, as next returned it", in.Attempt)
	case !ok:
		return nil, fmt.Errorf("status %.40q: want done, failed or blocked", said)
	case len(in.Summary) > maxWords || len(in.Question) > maxWords:
		return nil, fmt.Errorf("a text of more than %d bytes: put the long part into a file of the repo and name it",
			maxWords)
	case in.Status == signals.Blocked && in.Question == "":
		return nil, fmt.Errorf("blocked without a question: write what a person should answer")
	case in.Status == signals.Failed && in.Summary == "":
		return nil, fmt.Errorf("failed without a summary: give the reason")
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	s, state, err := signals.ParseSentinel(raw)
	if err == nil && state != signals.Whole {
		err = fmt.Errorf("it is not whole")
	}
	if err != nil {
		return nil, err
	}
	return &engine.Sentinel{Step: s.Step, Status: s.Status, Summary: s.Summary, Question: s.Question, Options: s.Options,
		Run: s.Run, Attempt: s.Attempt, Answer: s.Answer}, nil
}

type evaluateIn struct {
	Run     string `json:"run" jsonschema:"the id of the run"`
	Step    string `json:"step" jsonschema:"the id of the step whose gate is meant"`
	Attempt int    `json:"attempt,omitempty" jsonschema:"its attempt; the newest if none is said"`
	Wait    int    `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the outcome (0 to 600)"`
}

// judged is what came of an attempt.
type judged struct {
	Run      string    `json:"run"`
	Step     string    `json:"step"`
	Attempt  int       `json:"attempt"`
	Outcome  string    `json:"outcome"` // passed, failed, routed, human, window, waiting, over
	Gate     string    `json:"gate,omitempty"`
	To       []string  `json:"to,omitempty"` // where the work goes
	Score    *float64  `json:"score,omitempty"`
	Failures []failure `json:"failures,omitempty"`
	// of outcome routed: the round that sent the work on by a name, with its words
	Routes []failure `json:"routes,omitempty"`
	Say    string    `json:"say"`
	Phase  string    `json:"phase"` // of the run
}

func (s *server) evaluate(ctx context.Context, repo Repo, in evaluateIn) (any, error) {
	within, err := wait(in.Wait)
	if err != nil {
		return nil, err
	}
	r, st, err := s.find(ctx, repo, in.Run, in.Step)
	if err != nil {
		return nil, err
	}
	n := in.Attempt
	if n == 0 {
		n = len(st.Attempts)
	}
	if n < 1 || n > len(st.Attempts) {
		return nil, fmt.Errorf("step %s of %s has no attempt %d: it has had %d", st.ID, r.ID, n, len(st.Attempts))
	}
	if a := st.Attempts[n-1]; a.State == engine.Running && a.Offered && a.SignalType == engine.SignalFile {
		return nil, fmt.Errorf("%s.%d has not signalled: call signal first", st.ID, n)
	}
	var out judged
	err = s.until(ctx, repo, r.ID, within, func() (bool, error) {
		r, st, err = s.find(ctx, repo, in.Run, in.Step)
		if err != nil {
			return false, err
		}
		out = judgedOf(r, st, n)
		return out.Outcome != "waiting" && out.Outcome != "window", nil
	})
	return out, err
}

// judgedOf returns how attempt n of a step was judged so far.
func judgedOf(r daemon.RunStatus, st daemon.StepStatus, n int) judged {
	a := st.Attempts[n-1]
	out := judged{Run: r.ID, Step: st.ID, Attempt: n, Phase: r.Phase, To: a.To}
	var last *engine.Round
	for _, g := range st.Gates {
		for _, q := range g.Rounds {
			if q.Attempt != n {
				continue
			}
			if last == nil || q.Seq >= last.Seq {
				last, out.Gate, out.Score = &q, g.ID, q.Score
			}
			if q.Route != "" && !q.Open() && q.Outcome == q.Route {
				out.Routes = append(out.Routes, failureOf(g.ID, q))
			} else if q.State == engine.Refused ||
				q.State == engine.Undone && q.Feedback != "" && q.Outcome != engine.OutcomePass {
				out.Failures = append(out.Failures, failureOf(g.ID, q))
			}
		}
	}
	switch {
	case a.State == engine.Passed || a.State == engine.Skipped:
		out.Outcome, out.Say = "passed", "continue with next"
	case a.State == engine.Routed:
		out.Outcome, out.Say = "routed", "continue with next"
	case a.State == engine.Superseded && over(r) && len(out.Failures) == 0:
		out.Outcome, out.Say = "over", "the run is "+r.Phase+" ("+r.EndWhy+")"
	case a.State == engine.Superseded && last != nil && last.Route != "" && last.To != "":
		out.Outcome, out.To, out.Say = "routed", []string{last.To},
			last.Outcome+" at "+out.Gate+": continue with next, which offers the work again if the route leads back"
	case a.State == engine.Superseded:
		out.Outcome, out.Say = "failed", "next offers the work again, with the findings, if the run goes on"
	case last != nil && last.State == engine.OnHuman:
		out.Outcome, out.Say = "human",
			out.Gate+" asks a person, and only a person decides it ("+last.Why+
				"): inform your user, and continue with other steps on offer"
	case last != nil && last.State == engine.OnWindow:
		out.Outcome, out.Say = "window",
			out.Gate+" passes by itself when its veto window closes: "+last.WindowEnds.Format("15:04:05")
	default:
		out.Outcome, out.Say = "waiting", "it is not judged yet: call evaluate again"
	}
	return out
}
