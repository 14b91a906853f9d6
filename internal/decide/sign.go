package decide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// How long a signed answer is valid: one submitted at once, and one carried.
const (
	signedHere    = 10 * time.Minute
	signedCarried = 24 * time.Hour
)

// wantsKey reports whether a decision at the gate is signed: it has to be, or one of the approvers
// whose words count at the forge too has a key.
func wantsKey(g *daemon.GateStatus) bool {
	return g.Trust == engine.TrustSigned || g.Trust == engine.TrustForge &&
		slices.ContainsFunc(g.Approvers, func(a string) bool { return !strings.HasPrefix(a, engine.ForgePrefix) })
}

// proofOf sets the signed text of a decision at a gate: it signs, or reads the file of an answer
// signed elsewhere.
func proofOf(ctx context.Context, con *console.Console, p *workspace.Workspace, d *Decision) error {
	g := d.at
	if d.Signed != "" {
		data, err := approval.ReadSigned(d.Signed)
		d.proof = string(data)
		return err
	}
	if d.Key == "" && d.Out == "" && !d.Unsigned && (g == nil || !wantsKey(g)) {
		return nil // the gate wants none
	}
	if d.Unsigned && d.Out == "" {
		return fault.Misused("name a file: -o FILE", "--unsigned writes the decision to a file")
	}
	switch {
	case g == nil || d.Run == "":
		return d.which(", and a signature is for one run")
	case g.Round == 0:
		return fault.Failed("`sluice show "+text.Line(d.Gate)+"` shows its state", "gate %s asks nothing now",
			text.Line(d.Gate))
	}
	said, until, err := toSign(con, p, d, g)
	if err != nil {
		return err
	}
	if d.Unsigned {
		return WriteSigned(con, d.Out, said,
			"this file is to be signed: read it, then `sluice keys sign "+text.Line(d.Out)+"` on the machine where your key is")
	}
	key, err := Keyring(con).Find(ctx, approval.Store{State: p.State}, d.Key, g.Approvers)
	if err != nil {
		return err
	}
	con.Note("signing with %s: %s of %s, round %d of %s, valid until %s", key.Says, d.Outcome, d.Gate, g.Round, d.Run,
		render.Clock(until))
	whole, err := Keyring(con).Sign(ctx, key, said, approval.GateNamespace)
	if err != nil {
		return err
	}
	if d.Out != "" {
		d.proof = ""
		return WriteSigned(con, d.Out, whole,
			fmt.Sprintf("it counts until %s: `sluice %s %s --signed %s` hands it in, or put it into %s as %s-%s",
				render.Clock(until), d.verb(), d.Gate, text.Line(d.Out), layout.SignalsDir, d.Gate, d.Outcome))
	}
	d.proof = string(whole)
	return nil
}

func (d Decision) verb() string {
	switch d.Outcome {
	case engine.OutcomePass, engine.OutcomeFail, engine.OutcomeVeto:
		return d.Outcome
	}
	return "decide"
}

// toSign returns the text to sign for a decision about the gate's current round.
func toSign(con *console.Console, p *workspace.Workspace, d *Decision,
	g *daemon.GateStatus) (text []byte, until time.Time, err error) {
	life := d.Life
	if life == 0 {
		if life = signedHere; d.Out != "" {
			life = signedCarried
		}
	}
	if life < time.Second || life > engine.MaxSigned {
		return nil, until, fault.Misused("give one such as 30m or 48h", "--expires %s: want at most %s", life,
			engine.MaxSigned)
	}
	until = con.Now().Add(life).Truncate(time.Second)
	text = approval.Approval{Repo: p.SignedAs(), Run: d.Run, Gate: d.Gate, Round: g.Round, Decision: d.Outcome,
		Reviewed: g.Reviewed,
		Nonce:    approval.NewNonce(), Expires: until, Words: d.Text,
		Answer: string(d.answer), Findings: string(d.findings)}.Text()
	if _, err := approval.ParseApproval(text); err != nil {
		return nil, until, fault.Failed("write it in plain text", "it cannot be written for signing: %v", err)
	}
	return text, until, nil
}

// WriteSigned writes a file that a person carries, never over another.
func WriteSigned(con *console.Console, file string, data []byte, says string) error {
	if file == "-" {
		_, err := con.Out.Write(data)
		return err
	}
	err := atomicfile.WriteNew(file, data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Failed("remove it, or name another file", "%s exists already", text.Line(file))
	}
	if err == nil {
		con.Note("written: %s", text.Line(file))
		con.Note("%s", says)
	}
	return err
}

// Keyring returns the private keys of this machine; ssh-keygen asks on the terminal for a
// passphrase or a touch.
func Keyring(con *console.Console) approval.Keyring {
	k := approval.Keyring{Env: con.Env, Home: con.Getenv("HOME"), Agent: con.Getenv("SSH_AUTH_SOCK") != ""}
	k.Terminal, _ = console.Terminal(con.Err)
	return k
}

// Sign signs an answer at a gate that requires it.
func Sign(ctx context.Context, con *console.Console, p *workspace.Workspace, g daemon.GateStatus,
	ev engine.Answered) (proof string, err error) {
	d := Decision{Gate: ev.Gate, Run: ev.Run, Round: ev.Round, Outcome: ev.Outcome, Text: ev.Text,
		answer: ev.Answer, findings: ev.Findings, at: &g}
	if err = d.ofRound(); err == nil {
		err = proofOf(ctx, con, p, &d)
	}
	return d.proof, err
}
