package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// How long a signed answer is good for: one that is handed in at once, and one that is carried.
const (
	signedHere    = 10 * time.Minute
	signedCarried = 24 * time.Hour
)

// proofOf makes the signed text of a decision at a gate, or takes it from the file that it was written to elsewhere.
func proofOf(ctx context.Context, con *console.Console, p *workspace.Workspace, d *decision) error {
	g := d.at
	if d.signed != "" {
		data, err := approval.ReadSigned(d.signed)
		d.proof = string(data)
		return err
	}
	if d.key == "" && d.out == "" && !d.unsigned && (g == nil || g.Trust != engine.TrustSigned) {
		return nil // the gate wants none
	}
	if d.unsigned && d.out == "" {
		return fault.Misused("name a file: -o FILE", "--unsigned writes what is to be signed")
	}
	switch {
	case g == nil || d.run == "":
		return fault.Misused("say which run: --run RUN (`sluice inbox` names them)", "several runs have the gate %s, and a signature is for one", clean(d.gate))
	case g.Round == 0:
		return fault.Failed("`sluice show "+clean(d.gate)+"` tells how it stands", "gate %s asks nothing now", clean(d.gate))
	case d.round != 0 && d.round != g.Round:
		return fault.Failed("look again: `sluice show "+clean(d.gate)+"`", "gate %s is at round %d, and not at %d", clean(d.gate), g.Round, d.round)
	}
	text, until, err := toSign(con, p, d, g)
	if err != nil {
		return err
	}
	if d.unsigned {
		return writeSigned(con, d.out, text, "what is to be signed: look at it, then `sluice keys sign "+clean(d.out)+"`, on whatever machine your key is")
	}
	key, err := keyring(con).Find(ctx, approval.Store{State: p.State}, d.key, g.Approvers)
	if err != nil {
		return err
	}
	con.Note("signing with %s: %s of %s, round %d of %s, good until %s", key.Says, d.outcome, d.gate, g.Round, d.run, render.Clock(until))
	whole, err := keyring(con).Sign(ctx, key, text, approval.GateNamespace)
	if err != nil {
		return err
	}
	if d.out != "" {
		d.proof = ""
		return writeSigned(con, d.out, whole, fmt.Sprintf("it counts until %s: `sluice %s %s --signed %s` hands it in, or put it into %s as %s-%s", render.Clock(until), d.verb(), d.gate, clean(d.out), layout.SignalsDir, d.gate, d.outcome))
	}
	d.proof = string(whole)
	return nil
}

// verb is the command that this decision was given by.
func (d decision) verb() string {
	switch d.outcome {
	case engine.OutcomePass, engine.OutcomeFail, engine.OutcomeVeto:
		return d.outcome
	}
	return "decide"
}

// toSign is the text that stands for a decision about what the gate's round is over now.
func toSign(con *console.Console, p *workspace.Workspace, d *decision, g *daemon.GateStatus) (text []byte, until time.Time, err error) {
	life := d.life
	if life == 0 {
		if life = signedHere; d.out != "" {
			life = signedCarried
		}
	}
	if life < time.Second || life > engine.MaxSigned {
		return nil, until, fault.Misused("give one such as 30m or 48h", "--expires %s: want at most %s", life, engine.MaxSigned)
	}
	until = con.Now().Add(life).Truncate(time.Second)
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // it ends the program where it fails
	text = approval.Approval{Repo: p.ID, Run: d.run, Gate: d.gate, Round: g.Round, Decision: d.outcome, Reviewed: g.Reviewed,
		Nonce: hex.EncodeToString(nonce), Expires: until, Words: d.text, Answer: string(d.answer)}.Text()
	if _, err := approval.ParseApproval(text); err != nil {
		return nil, until, fault.Failed("write it in plain words", "it cannot be written down to be signed: %v", err)
	}
	return text, until, nil
}

// writeSigned writes a file that a person carries, never over another.
func writeSigned(con *console.Console, file string, data []byte, says string) error {
	if file == "-" {
		_, err := con.Out.Write(data)
		return err
	}
	err := atomicfile.WriteNew(file, data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Failed("remove it, or name another", "%s is there already", clean(file))
	}
	if err == nil {
		con.Note("written: %s", clean(file))
		con.Note("%s", says)
	}
	return err
}

// keyring has the private keys of this machine; ssh-keygen asks for a passphrase or a touch on the terminal.
func keyring(con *console.Console) approval.Keyring {
	k := approval.Keyring{Env: con.Env, Home: con.Getenv("HOME"), Agent: con.Getenv("SSH_AUTH_SOCK") != ""}
	k.Terminal, _ = console.Terminal(con.Err)
	return k
}
