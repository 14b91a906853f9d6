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
	list  approval.List
	given map[string]approval.Approval // the signed answer of each round
	n     int
	why   string // of the first that does not hold
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
		s.given[at] = a
	case engine.RoundPassed:
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		signed, ok := s.given[at]
		switch {
		case f.By == nil || f.By.Trust != engine.TrustSigned:
		case !ok:
			return at + ": its pass counts as signed, but no signature is on record"
		case signed.Answer != string(f.Answer):
			return at + ": the recorded answer differs from the signed one"
		}
	case engine.RoundFailed:
		at := f.RunID() + " " + render.Round(f.Gate, f.N)
		switch {
		case f.By == nil || f.By.Trust != engine.TrustSigned:
		case s.given[at].Findings != string(f.Findings):
			return at + ": the recorded comments differ from the signed ones"
		}
	}
	return ""
}
