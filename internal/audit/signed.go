package audit

import (
	"bytes"
	"fmt"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/render"
	"sluice/journal"
)

// signatures compares the signed answers on record with what was signed.
type signatures struct {
	list   approval.List
	answer map[string]string // given by the signed answer of each round
	n      int
	why    string // of the first that does not hold
}

// sees wraps keep and checks each signed answer among the facts that it keeps.
func (s *signatures) sees(keep journal.Keep) journal.Keep {
	return func(rec journal.Record, n int) bool {
		if !keep(rec, n) {
			return false
		}
		if raw := rec.Facts[n]; s.why == "" && (bytes.Contains(raw, []byte(`"signature_used"`)) || bytes.Contains(raw, []byte(`"round_passed"`))) {
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
		text, key, err := s.list.Holds([]byte(f.Proof), approval.GateNamespace)
		if err != nil {
			return fmt.Sprintf("%s: the signature of %s: %v", at, f.By.Who, err)
		}
		a, err := approval.ParseApproval(text)
		switch {
		case err != nil:
			return fmt.Sprintf("%s: what was signed: %v", at, err)
		case key != f.By.Key, a.Run != f.RunID(), a.Gate != f.Gate, a.Round != f.N, a.Decision != f.Outcome, a.Nonce != f.Nonce:
			return at + ": the signed decision differs from the recorded one"
		}
		s.answer[at] = a.Answer
	case engine.RoundPassed:
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		signed, ok := s.answer[at]
		switch {
		case f.By == nil || f.By.Trust != engine.TrustSigned:
		case !ok:
			return at + ": its pass counts as signed, but no signature is on record"
		case signed != string(f.Answer):
			return at + ": the recorded answer differs from the signed one"
		}
	}
	return ""
}
