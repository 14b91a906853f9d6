package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/journal"
)

// signatures compares the signed answers on record with what was signed.
type signatures struct {
	list  approval.List
	given map[string]approval.Approval // the signed answer of each round
	n     int
	why   string // of the first that does not hold
}

// SignedAnswers returns a check of the facts of a run, in their order: why a signed answer among them
// does not hold by the keys of the list, or "".
func SignedAnswers(list approval.List) func(f engine.Fact) (why string) {
	s := &signatures{list: list, given: map[string]approval.Approval{}}
	return s.look
}

// sees wraps keep and checks each signed answer among the facts that it keeps.
func (s *signatures) sees(keep journal.Keep) journal.Keep {
	return func(rec journal.Record, n int) bool {
		if !keep(rec, n) {
			return false
		}
		has := func(kind string) bool { return bytes.Contains(rec.Facts[n], []byte(`"`+kind+`"`)) }
		if raw := rec.Facts[n]; s.why == "" && (has("signature_used") || has("round_passed") || has("round_failed")) {
			if f, err := engine.DecodeFact(raw); err == nil { // the export reports what cannot be read
				s.why = s.look(f)
			}
		}
		return true
	}
}

// look returns why a signed answer does not hold.
func (s *signatures) look(f engine.Fact) string {
	switch f := f.(type) {
	case engine.SignatureUsed:
		s.n++
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		said, key, err := s.list.Holds([]byte(f.Proof), approval.GateNamespace)
		if err != nil {
			return fmt.Sprintf("%s: the signature of %s: %v", at, f.By.Who, err)
		}
		a, err := approval.ParseApproval(said)
		switch {
		case err != nil:
			return fmt.Sprintf("%s: what was signed: %v", at, err)
		case key != f.By.Key, a.Run != f.RunID(), a.Gate != f.Gate, a.Round != f.N,
			a.Decision != f.Outcome, a.Nonce != f.Nonce:
			return at + ": the signed decision differs from the recorded one"
		}
		s.given[at] = a
	case engine.RoundPassed:
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		signed, ok := s.given[at]
		switch {
		case f.By == nil || f.By.Trust != engine.TrustSigned:
		case !ok:
			return at + ": its pass counts as signed, but no signature is on record"
		case signed.Decision != engine.OutcomePass:
			return at + ": it is recorded as passed, but " + signed.Decision + " was signed"
		case !sameJSON(signed.Answer, f.Answer):
			return at + ": the recorded answer differs from the signed one"
		case !sameWords(signed.Words, cmp.Or(f.Feedback, f.Text)): // older releases had the words in Text
			return at + ": the recorded words differ from the signed ones"
		}
	case engine.RoundFailed:
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		signed, ok := s.given[at]
		switch {
		case f.By == nil || f.By.Trust != engine.TrustSigned:
		case !ok:
			return at + ": its fail counts as signed, but no signature is on record"
		case !failsBy(signed.Decision, f.Outcome):
			return at + ": it is recorded as " + f.Outcome + ", but " + signed.Decision + " was signed"
		case !sameJSON(signed.Findings, f.Findings):
			return at + ": the recorded comments differ from the signed ones"
		case signed.Words != "" && !sameWords(signed.Words, f.Feedback): // without words the reviewer's are recorded
			return at + ": the recorded words differ from the signed ones"
		}
	}
	return ""
}

// failsBy reports whether a round_failed with the outcome may come from the decision. A veto is
// recorded as a fail, and older releases recorded a named route as a round_failed.
func failsBy(decision, outcome string) bool {
	if outcome == engine.OutcomeFail {
		return engine.Refuses(decision)
	}
	return decision == outcome
}

// sameJSON compares both as the journal writes them: it escapes <, > and &, and the signed text
// does not.
func sameJSON(signed string, recorded json.RawMessage) bool {
	if signed == "" || len(recorded) == 0 {
		return signed == string(recorded)
	}
	a, err := json.Marshal(json.RawMessage(signed))
	if err != nil {
		return false
	}
	b, err := json.Marshal(recorded)
	return err == nil && bytes.Equal(a, b)
}

// sameWords reports whether the recorded words are the signed ones, cut as the engine cuts them.
func sameWords(signed, recorded string) bool {
	return recorded == text.Cut(signed, engine.MaxFeedback, "\n[cut]")
}
