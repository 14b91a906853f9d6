package render

import (
	"cmp"
	"fmt"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/findings"
	"sluice/internal/form"
	"sluice/internal/text"
)

// sayGate returns the words for facts of a gate without a person.
func sayGate(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.RoundOpened:
		return quiet(fmt.Sprintf("opened over %s (%s)", Attempt(f.Step, f.Attempt), f.Level))
	case engine.ReviewStarted:
		return FactLine{Text: "reviewer launched", Style: console.Blue, Key: true}
	case engine.Judged:
		s := FactLine{Text: judge(f.ByKind) + ": " + f.Outcome, Style: console.Green}
		if f.Word != "" && f.Word != f.Outcome {
			s.Text += " (it said: " + f.Word + ")"
		}
		if f.Score != nil {
			s.Text += fmt.Sprintf(", score %g", *f.Score)
		}
		if f.Outcome != engine.OutcomePass {
			s.Style = console.Yellow
		}
		s.Text = Because(s.Text, f.Feedback)
		s.Key = f.ByKind != "step" || f.Outcome != engine.OutcomePass // the step itself says so
		return s
	case engine.Inconclusive:
		return warns(Because("review inconclusive", f.Why) + notBefore(f.NotBefore))
	case engine.Agreed:
		return quiet("reviewer agrees; you are notified")
	case engine.WindowOpened:
		return warns("goes on unless you veto" + until(f.Until) + ": sluice veto " + named(f.Gate, f.Run))
	case engine.GateFailed:
		return quiet(fmt.Sprintf("failure %d counted", f.Count))
	case engine.RouteCounted:
		return quiet(fmt.Sprintf("%s %d counted", f.Route, f.Count))
	case engine.RetryContextOwed:
		return FactLine{Text: "the reason is written to " + f.Path, Key: true}
	case engine.OutputsOwed:
		return quiet("its outputs will be written")
	case engine.ExhaustedTo:
		return warns("its failures are used up → " + f.To + " (on_exhausted)")
	case engine.CountRenewed:
		return quiet("its counts restart: the step of on_exhausted has passed")
	case engine.CountReset:
		return FactLine{Text: "its counts restart", Style: console.Dim, Key: true}
	}
	return FactLine{}
}

func named(gate, run string) string { return daemon.Named(gate, run, childName(run) != "") }

// sayHuman returns the words for what asks a person, and for ends of rounds.
func sayHuman(f engine.Fact) FactLine {
	switch f := f.(type) {
	case engine.HumanAsked:
		count, words := lastTime(f.Why) // the words of the last failure are in the lines before
		s := warns("asks you (" + Why(cmp.Or(count, words)) + "): sluice show " + named(f.Gate, f.Run))
		if f.Forced {
			s.Text += "; it asks you for the rest of the run"
		}
		return s
	case engine.Reminded:
		return warns("still asks you: sluice show " + named(f.Gate, f.Run))
	case engine.SignatureUsed:
		return FactLine{Text: fmt.Sprintf("%s signed by %s with %s", f.Outcome, f.By.Who, f.By.Key),
			Style: console.Dim, Key: true}
	case engine.RoundPassed:
		by := "passed by " + By(f.ByKind, f.By)
		if gave := form.Shown(f.Answer); gave != "" {
			by += " with " + gave
		}
		why := cmp.Or(f.Feedback, f.Text)
		return FactLine{Text: Because(by, why), Style: console.Green,
			Key: f.ByKind != "step"} // the step itself says so
	case engine.RoundFailed:
		what := Failed(f.Outcome, f.Veto) + " by " + By(f.ByKind, f.By) + " → " + f.To
		if n := len(findings.List(f.Findings)); n > 0 {
			what += ", " + text.Plural(n, "comment")
		}
		if f.LetThrough > 0 {
			what += fmt.Sprintf(" (not passed, and goes on after %s)", text.Plural(f.LetThrough, "failure"))
		}
		if f.Forced {
			what += " (its failures are used up: from here on the gate asks you)"
		}
		return FactLine{Text: Because(what, ownWords(f.ByKind, f.Feedback)), Style: console.Red, Key: true}
	case engine.RoundRouted:
		what := f.Outcome + " by " + By(f.ByKind, f.By) + " → " + f.To
		if f.Times > 1 {
			what += fmt.Sprintf(" (time %d)", f.Times)
		}
		if f.LetThrough > 0 {
			what += " (not passed, and goes on)"
		}
		if f.Forced {
			what += " (this route is used up: from here on the gate asks you)"
		}
		return warns(Because(what, ownWords(f.ByKind, f.Feedback)))
	case engine.RoundVoided:
		return warns(Because("void", f.Why))
	}
	return FactLine{}
}

// ownWords returns the words of a decision, unless the verdict in the line before has them.
func ownWords(kind, words string) string {
	switch kind {
	case "reviewer", "command", "step", "forge":
		return ""
	}
	return words
}

// Failed returns how a round did not pass, as it stands before who decided it.
func Failed(outcome string, veto bool) string {
	switch {
	case veto:
		return "vetoed"
	case outcome == engine.OutcomeFail, outcome == "":
		return "failed"
	}
	return outcome
}

// vetoed reports whether a person's veto ended the newest round of a gate.
func vetoed(g daemon.GateStatus) bool {
	n := len(g.Rounds)
	return n > 0 && g.State == engine.Refused && g.Rounds[n-1].Veto
}
