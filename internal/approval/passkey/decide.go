package passkey

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// Valid is how long a decision may take from BeginDecision to FinishDecision.
const Valid = 10 * time.Minute

// Ask is a decision that a person is about to sign.
type Ask struct {
	Run       string
	Gate      string
	Round     int
	Decision  string // pass, fail, veto or a route's name
	Reviewed  string // digest of what the round is about; "" = it is bound to nothing
	Words     string
	Answer    string   // a pass's structured answer: JSON on one line; "" = none
	Findings  string   // a fail's comments, as findings.Clean writes them; "" = none
	Approvers []string // whose passkeys the browser offers; none = anybody's
}

// Challenge is what the browser is asked to sign.
type Challenge struct {
	Text    string         `json:"text"` // for FinishDecision, as it is; a person may read it
	Options RequestOptions `json:"options"`
	Expires time.Time      `json:"expires"`
}

// BeginDecision returns the options of navigator.credentials.get for the decision.
func (d Desk) BeginDecision(a Ask) (*Challenge, error) {
	list, err := d.list()
	if err != nil {
		return nil, err
	}
	allow := d.credentials(list, a.Approvers)
	if len(allow) == 0 {
		who := cmp.Or(strings.Join(a.Approvers, " or "), "anybody")
		return nil, fault.New("register one: sluice keys add --passkey --name NAME",
			"no passkey of %s is registered at %s", text.Line(who), d.Site.origin)
	}
	until := d.Now().Add(Valid).UTC().Truncate(time.Second)
	said := d.approval(a, approval.NewNonce(), until).Text()
	if _, err := approval.ParseApproval(said); err != nil {
		return nil, fault.New("write it in plain text", "it cannot be written for signing: %w", err)
	}
	return &Challenge{Text: string(said), Expires: until,
		Options: d.Site.request(said, approval.GateNamespace, allow)}, nil
}

func (d Desk) approval(a Ask, nonce string, expires time.Time) approval.Approval {
	return approval.Approval{Repo: cmp.Or(d.SignedAs, d.Repo), Run: a.Run, Gate: a.Gate, Round: a.Round,
		Decision: a.Decision, Reviewed: a.Reviewed, Nonce: nonce, Expires: expires, Words: a.Words,
		Answer: a.Answer, Findings: a.Findings}
}

// FinishDecision takes what navigator.credentials.get gave, as toJSON() writes it, for a text of
// BeginDecision. a is what the gate asks now. It returns the answer to hand in; the error says what
// does not hold. Whether the signer may decide, and whether the nonce is new, the engine decides.
func (d Desk) FinishDecision(a Ask, said string, response []byte) (engine.Answered, error) {
	var none engine.Answered
	signed, err := approval.ParseApproval([]byte(said))
	if err != nil {
		return none, err
	}
	if err := d.differs(a, signed); err != nil {
		return none, err
	}
	r, err := readAsserted(response)
	if err != nil {
		return none, err
	}
	list, err := d.list()
	if err != nil {
		return none, err
	}
	key, err := d.signer(list, r.ID)
	if err != nil {
		return none, err
	}
	proof, err := r.repack(key, d.Site, approval.GateNamespace, said)
	if err != nil {
		return none, err
	}
	if _, _, err := list.Verify(proof, approval.GateNamespace); err != nil {
		return none, err
	}
	ev := engine.Answered{Gate: signed.Gate, Run: signed.Run, Round: signed.Round, Outcome: signed.Decision,
		Text: signed.Words, Proven: engine.Proven{Proof: string(proof)}}
	if signed.Answer != "" {
		ev.Answer = json.RawMessage(signed.Answer)
	}
	if signed.Findings != "" {
		ev.Findings = json.RawMessage(signed.Findings)
	}
	return ev, nil
}

// signer returns whose passkey has the id.
func (d Desk) signer(list approval.List, id []byte) (approval.Signer, error) {
	for _, s := range list.Signers {
		if about, ok := list.Passkeys[s.Key]; ok && bytes.Equal(about.Credential, id) && about.Origin == d.Site.origin {
			return s, nil
		}
	}
	return approval.Signer{}, fault.New("register it: sluice keys add --passkey --name NAME",
		"this passkey is not known, or was removed")
}

// differs returns in what a signed text is not the decision that is asked for.
func (d Desk) differs(a Ask, signed approval.Approval) error {
	want := d.approval(a, signed.Nonce, signed.Expires)
	want.Words = approval.Words(want.Words)
	for _, f := range []struct{ what, signed, want string }{
		{"repo", signed.Repo, want.Repo}, {"run", signed.Run, want.Run}, {"gate", signed.Gate, want.Gate},
		{"round", fmt.Sprint(signed.Round), fmt.Sprint(want.Round)}, {"decision", signed.Decision, want.Decision},
		{"content", signed.Reviewed, want.Reviewed},
	} {
		if f.signed != f.want {
			return fault.New("look again, and decide again", "it was signed for another %s (%s; now it is %s)", f.what,
				text.Clip(f.signed, 80), text.Clip(f.want, 80))
		}
	}
	switch now := d.Now(); {
	case signed != want:
		return fault.New("decide again", "what was signed has other words, another answer or other comments")
	case !now.Before(signed.Expires):
		return fault.New("decide again", "it expired at %s", signed.Expires.UTC().Format("2006-01-02 15:04:05Z"))
	case signed.Expires.After(now.Add(Valid)):
		return fault.New("decide again", "it is valid for longer than %s", Valid)
	}
	return nil
}
