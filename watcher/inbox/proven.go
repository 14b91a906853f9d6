package inbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"sluice/engine"
	"sluice/internal/approval"
)

// Proven checks a signed answer against the repo's approvers. It reads the list each time, so a
// revoked key stops counting at once. words are the signed ones.
func (x *Inbox) Proven(proof string) (p engine.Proven, words string) {
	if proof == "" {
		return p, ""
	}
	if len(proof) > approval.MaxBytes {
		return engine.Proven{Unproven: fmt.Sprintf("the signed answer has more than %d bytes", approval.MaxBytes)}, ""
	}
	p.Proof = proof
	a, by, err := approved(x, []byte(proof))
	if err != nil {
		p.Unproven = err.Error()
		return p, ""
	}
	p.Signed = &engine.Signed{Names: by.Names, Key: by.Key, Run: a.Run, Gate: a.Gate, Round: a.Round, Outcome: a.Decision,
		Digest: a.Reviewed, Nonce: a.Nonce, Expires: a.Expires}
	if a.Answer != "" {
		p.Signed.Answer = json.RawMessage(a.Answer)
	}
	if a.Findings != "" {
		p.Signed.Findings = json.RawMessage(a.Findings)
	}
	return p, a.Words
}

// approved returns the approval, if it is valid for this repo.
func approved(x *Inbox, data []byte) (a approval.Approval, by approval.Signer, err error) {
	list, err := approval.Store{State: x.State}.Load()
	if err != nil {
		return a, by, fmt.Errorf("whose signature counts cannot be read: %w", err)
	}
	text, by, err := list.Verify(data, approval.GateNamespace)
	if err != nil {
		return a, by, err
	}
	if a, err = approval.ParseApproval(text); err != nil {
		return a, by, err
	}
	switch {
	case x.opt.Repo == "":
		return a, by, errors.New("this repo has no id, so nothing signed can be for it")
	case a.Repo != x.opt.Repo && (x.opt.Journal == nil || a.Repo != x.opt.Journal()):
		return a, by, fmt.Errorf("it was signed for another repo (%s; this is %s): sign it in this one", a.Repo, x.opt.Repo)
	}
	return a, by, nil
}
