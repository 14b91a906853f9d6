package decide

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/signals"
)

// Decision is a person's decision at a gate.
type Decision struct {
	Gate, Outcome, Text, Run string
	Round                    int // 0: of a fail or a veto, the one that asks now; else the first

	Key, Out, Signed string        // files: the key, the output, a signed answer
	Unsigned         bool          // write what is to be signed
	Life             time.Duration // of the signature; 0 = the default
	Answers          []string      // NAME=VALUE, or the whole answer as JSON
	Comments         []string      // FILE:LINE:TEXT
	Review           bool          // comment on the changes in an editor

	at     *daemon.GateStatus
	inRun  bool            // the person named the run: so does a command that is advised
	runs   []string        // the live runs that have the gate; if it can be decided in some, those
	proof  string          // the signed text
	answer json.RawMessage // what is given beside the words

	comments []findings.Finding
	findings json.RawMessage // the comments
	draft    string          // the file on which they were written
}

// AskWords reads the reason of a fail or a veto, and asks for it if missing.
func AskWords(con *console.Console, d *Decision) error {
	if d.Text == "-" {
		b, err := io.ReadAll(io.LimitReader(con.In, engine.MaxFeedback+1))
		if err != nil {
			return err
		}
		d.Text = string(b)
	}
	if len(d.Text) > engine.MaxFeedback {
		return fault.Misused("put it into a file of the repo and name that", "the message has more than %d bytes",
			engine.MaxFeedback)
	}
	if err := commentsOf(d); err != nil {
		return err
	}
	if d.Review || len(d.comments) > 0 {
		return nil
	}
	if !engine.Refuses(d.Outcome) || d.Signed != "" || strings.TrimSpace(d.Text) != "" {
		return nil
	}
	if !con.Interactive() {
		return fault.Misused("give it with -m: the next attempt reads your words", "%s %s: no reason given", d.Outcome,
			text.Line(d.Gate))
	}
	var err error
	d.Text, err = askWhy(con)
	return err
}

func askWhy(con *console.Console) (string, error) {
	fmt.Fprint(con.Out, "What is wrong? (one line; the next attempt reads it) ")
	line, err := con.ReadLine()
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	if line = strings.TrimSpace(line); err != nil || line == "" {
		return "", fault.Misused("give the reason with -m", "nothing was decided: no reason given")
	}
	return line, nil
}

// InAttempt returns an error in the environment of an attempt: only a person decides.
func InAttempt(con *console.Console) error {
	if con.Getenv("SLUICE_TOKEN") == "" {
		return nil
	}
	return errors.New("this is the environment of an attempt: only a person decides")
}

// Give submits a decision: to the process that serves the repo, else as a file for the next one.
func Give(ctx context.Context, con *console.Console, p *workspace.Workspace, d Decision) error {
	if err := d.reviewed(ctx, con, p); err != nil {
		return err
	}
	if err := give(ctx, con, p, d); err != nil {
		d.keep(con)
		return err
	}
	Discard(d.draft)
	return nil
}

func give(ctx context.Context, con *console.Console, p *workspace.Workspace, d Decision) error {
	v, served, err := p.View(ctx)
	if err != nil {
		return err
	}
	st, err := v.Status(ctx, "")
	if err == nil {
		err = knownGate(con, st, &d)
	}
	if err != nil {
		v.Close()
		return err
	}
	s, ok := v.(workspace.Service)
	if !served || !ok {
		v.Close() // this releases the lock
	} else {
		defer s.Close()
	}
	if err := answerOf(con, &d); err != nil {
		return err
	}
	if err := sure(con, st.Runs, d); err != nil {
		return err
	}
	if err := proofOf(ctx, con, p, &d); err != nil || d.Out != "" {
		return err
	}
	if !served || !ok {
		return leaveDecision(con, p, d)
	}
	done, err := s.Do(ctx, engine.Answered{Gate: d.Gate, Run: d.Run, Round: d.Round, Outcome: d.Outcome, Text: d.Text,
		Answer: d.answer, Findings: d.findings, Proven: engine.Proven{Proof: d.proof}}, "command")
	if err != nil {
		return err
	}
	return tellDone(con, done, d)
}

func tellDone(con *console.Console, done daemon.Done, d Decision) error {
	if done.Ignored != "" {
		advice := "`sluice show " + d.named() + "` shows its state"
		if d.Run == "" {
			advice = "`sluice inbox --here` names the runs in which a gate waits"
		}
		return fault.Failed(advice, "nothing was done: %s", done.Ignored)
	}
	void := done.Void()
	if con.JSON {
		if err := con.Document(done); err != nil {
			return err
		}
	} else {
		con.PrintLines(render.Said(con, done.Facts))
	}
	switch gate := text.Line(d.Gate); {
	case !void:
		return nil
	case con.JSON:
		return fault.Exit(fault.ExitFailed)
	default:
		return fault.Failed("wait until it is checked; `sluice show "+d.named()+"` shows it then: decide again",
			"your %s of %s did not count: what was reviewed has changed since", text.Line(d.Outcome), gate)
	}
}

// knownGate checks the gate's name against live runs, and finds the run.
func knownGate(con *console.Console, st daemon.Status, d *Decision) error {
	if d.at == nil {
		d.inRun = d.Run != ""
	}
	var known []string
	var all, open []gateOf
	for _, r := range st.Runs {
		if !r.Live() || d.Run != "" && r.ID != d.Run {
			continue
		}
		for _, g := range r.Gates() {
			known = append(known, g.ID)
			if g.ID == d.Gate {
				all = append(all, gateOf{r.ID, &g})
				if takes(g, d.Outcome) {
					open = append(open, gateOf{r.ID, &g})
				}
				if !okOutcome(g, d.Outcome) {
					return fault.Failed("it takes: "+strings.Join(g.Outcomes, ", "), "gate %s has no outcome %q", d.Gate,
						text.Line(d.Outcome))
				}
			}
		}
	}
	at := d.among(all, open)
	if len(open) > 1 {
		return d.which("")
	}
	if len(at) == 1 && d.Run == "" {
		d.Run = at[0]
	}
	if len(at) > 0 {
		return d.ofRound()
	}
	return d.unknown(con, st, known)
}

// ofRound refuses a decision about another round than the gate is at. What lets work go on counts only
// for the round that the person has seen: if none is named, the first.
func (d *Decision) ofRound() error {
	if d.Round == 0 && !engine.Refuses(d.Outcome) && d.Signed == "" { // what is signed names its round
		d.Round = 1
	}
	now := d.at.Round
	if d.Run == "" || now == 0 || d.Round == 0 || d.Round == now {
		return nil
	}
	then := Decision{Gate: d.Gate, Run: d.Run, inRun: true, Outcome: d.Outcome, Round: now}
	return fault.Failed("look again: `sluice show "+then.named()+"`, then `"+then.command()+"`",
		"gate %s is at round %d, and your %s is for round %d", text.Line(d.Gate), now, text.Line(d.Outcome), d.Round)
}

// gateOf is a gate of a live run.
type gateOf struct {
	run  string
	gate *daemon.GateStatus
}

// takes reports whether a person's decision counts at the gate as it is.
func takes(g daemon.GateStatus, outcome string) bool {
	switch g.State {
	case engine.OnHuman:
		return true
	case engine.OnReview, engine.OnNotice, engine.OnWindow:
		return outcome != engine.OutcomePass
	}
	return g.State == engine.Approved && outcome == engine.OutcomeVeto
}

// among keeps the gates that the decision can be for: those where it counts, if there are some. It
// returns their runs.
func (d *Decision) among(all, open []gateOf) []string {
	if len(open) > 0 {
		all = open
	}
	d.runs = nil
	for _, o := range all {
		d.runs, d.at = append(d.runs, o.run), o.gate
	}
	return d.runs
}

// which returns the error where the run has to be named.
func (d *Decision) which(why string) error {
	return fault.Misused("name the run: --run RUN (`sluice inbox` lists them)", "several runs have the gate %s (%s)%s",
		text.Line(d.Gate), text.JoinMost(d.runs), why)
}

// okOutcome reports whether the gate takes the outcome, if it says which.
func okOutcome(g daemon.GateStatus, outcome string) bool {
	return len(g.Outcomes) == 0 || slices.Contains(g.Outcomes, outcome)
}

// leaveDecision writes the decision as a file: the next process that serves the repo takes it in.
func leaveDecision(con *console.Console, p *workspace.Workspace, d Decision) error {
	if !ids.Valid(d.Outcome) || !ids.Valid(d.Gate) {
		return fault.Misused("ids are letters, digits, '.', '_' and '-'", "%q at %q is not an outcome of a gate",
			text.Line(d.Outcome), text.Line(d.Gate))
	}
	name := d.Gate + "-" + d.Outcome + ".json"
	raw, err := d.file()
	if err != nil {
		return err
	}
	if d.proof != "" {
		name, raw = d.Gate+"-"+d.Outcome, []byte(d.proof)
	}
	if _, state, err := signals.ParseHuman(name, raw); err != nil || state != signals.Whole {
		return fault.Misused("write it in plain text", "the message cannot be written to a file: %v", err)
	}
	file, err := p.PutSignal(d.Run, name, raw)
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(map[string]string{"file": file})
	}
	con.Print("written: %s", layout.ShortPath(file))
	con.Note("no sluice process serves this repo now: the next one reads the decision, and it counts if the gate can "+
		"take it then (`sluice run %s`, or `sluice watch add` and `sluice daemon`)", cmp.Or(d.Run, "RUN"))
	return nil
}

func (d Decision) file() ([]byte, error) {
	return json.Marshal(struct {
		Answer   json.RawMessage `json:"answer,omitempty"`
		Feedback string          `json:"feedback,omitempty"`
		Findings json.RawMessage `json:"findings,omitempty"`
		Round    int             `json:"round,omitempty"`
		Run      string          `json:"run,omitempty"`
	}{d.answer, d.Text, d.findings, d.Round, d.Run})
}
