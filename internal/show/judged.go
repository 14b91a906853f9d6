package show

import (
	"cmp"
	"fmt"
	"slices"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
)

// Judged is what another gate than the shown one said: of the shown attempt, or of the newest attempt of
// an earlier step.
type Judged struct {
	Gate  string       `json:"gate"`
	Name  string       `json:"name,omitempty"`
	Round engine.Round `json:"round"`
}

// judgedShown is how many verdicts on earlier steps are shown, the newest.
const judgedShown = 5

// judged adds what other gates said of the shown attempt, and of the work of the steps before. Of those a
// command's pass says no more than that the run went on.
func (sh *Shown) judged(r daemon.RunStatus) {
	var earlier []Judged
	for _, s := range r.Steps {
		own := s.ID == sh.Step
		attempt := s.Attempt
		if own && sh.Attempt != nil {
			attempt = sh.Attempt.N
		}
		for _, g := range s.Gates {
			q := roundOf(g, s.ID, attempt)
			switch {
			case q == nil || sh.Gate != nil && g.ID == sh.Gate.ID || q.ByKind == "step" || q.ByKind == "criterion":
			case own:
				sh.Judged = append(sh.Judged, Judged{g.ID, g.Name, *q})
			case q.ByKind != "command":
				earlier = append(earlier, Judged{g.ID, g.Name, *q})
			}
		}
		if own {
			break
		}
	}
	slices.SortStableFunc(earlier, func(a, b Judged) int { return cmp.Compare(a.Round.Seq, b.Round.Seq) })
	sh.Judged = append(earlier[max(len(earlier)-judgedShown, 0):], sh.Judged...)
}

// roundOf returns the newest round of a gate about an attempt, if something was said in it; else nil.
func roundOf(g daemon.GateStatus, step string, attempt int) *engine.Round {
	for _, q := range slices.Backward(g.Rounds) {
		if q.Step == step && q.Attempt == attempt && (q.Outcome != "" || q.Feedback != "") {
			return &q
		}
	}
	return nil
}

// printVerdicts prints what was said of the work, by the shown gate last.
func printVerdicts(con *console.Console, sh *Shown) {
	for _, j := range sh.Judged {
		what := text.Title(j.Gate, j.Name)
		if j.Round.Step != sh.Step {
			what += " of " + j.Round.Step
		}
		words := what + ": " + verdictWords(j.Round)
		if j.Round.ByKind != "" {
			words += " by " + render.By(j.Round.ByKind, j.Round.By)
		}
		con.Text("judged", render.Because(words, j.Round.Feedback))
		printFindings(con, j.Round)
	}
	if g := sh.Gate; g != nil {
		printVerdict(con, sh, g)
	}
}

// Outcome returns how a round ended, or how it stands.
func Outcome(q engine.Round) string {
	if q.Veto {
		return engine.OutcomeVeto
	}
	return cmp.Or(q.Outcome, render.State(q.State))
}

// verdictWords returns the outcome of a round, and its score.
func verdictWords(q engine.Round) string {
	s := Outcome(q)
	if q.Score != nil {
		s += fmt.Sprintf(", score %g", *q.Score)
	}
	return s
}
