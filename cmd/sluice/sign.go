package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
)

// How long a signed answer is good for: one that is handed in at once, and one that is carried.
const (
	signedHere    = 10 * time.Minute
	signedCarried = 24 * time.Hour
)

// signIn is how long a person may take to type a passphrase or to touch a key.
const signIn = 5 * time.Minute

// askAgentIn bounds a question to ssh-agent.
const askAgentIn = 5 * time.Second

// proof makes the signed text of a decision at a gate, or takes it from the file that it was written to elsewhere.
func (a *app) proof(ctx context.Context, p *place, d *decision) error {
	g := d.at
	if d.signed != "" {
		data, err := readSigned(d.signed)
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
	text, until, err := a.toSign(p, d, g)
	if err != nil {
		return err
	}
	if d.unsigned {
		return a.writeSigned(d.out, text, "what is to be signed: look at it, then `sluice keys sign "+clean(d.out)+"`, on whatever machine your key is")
	}
	key, err := a.keyFor(ctx, p, d.key, g.Approvers)
	if err != nil {
		return err
	}
	a.Note("signing with %s: %s of %s, round %d of %s, good until %s", key.says, d.outcome, d.gate, g.Round, d.run, render.Clock(until))
	whole, err := a.sign(ctx, key, text, approval.GateNamespace)
	if err != nil {
		return err
	}
	if d.out != "" {
		d.proof = ""
		return a.writeSigned(d.out, whole, fmt.Sprintf("it counts until %s: `sluice %s %s --signed %s` hands it in, or put it into %s as %s-%s", render.Clock(until), d.verb(), d.gate, clean(d.out), signalsDir, d.gate, d.outcome))
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
func (a *app) toSign(p *place, d *decision, g *daemon.GateStatus) (text []byte, until time.Time, err error) {
	life := d.life
	if life == 0 {
		if life = signedHere; d.out != "" {
			life = signedCarried
		}
	}
	if life < time.Second || life > engine.MaxSigned {
		return nil, until, fault.Misused("give one such as 30m or 48h", "--expires %s: want at most %s", life, engine.MaxSigned)
	}
	until = a.Now().Add(life).Truncate(time.Second)
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // it ends the program where it fails
	text = approval.Approval{Repo: p.id, Run: d.run, Gate: d.gate, Round: g.Round, Decision: d.outcome, Reviewed: g.Reviewed,
		Nonce: hex.EncodeToString(nonce), Expires: until, Words: d.text, Answer: string(d.answer)}.Text()
	if _, err := approval.ParseApproval(text); err != nil {
		return nil, until, fault.Failed("write it in plain words", "it cannot be written down to be signed: %v", err)
	}
	return text, until, nil
}

func readSigned(file string) ([]byte, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	data, _, err := atomicfile.OpenRegular(filepath.Dir(abs), filepath.Base(abs), approval.MaxBytes)
	if err == nil && !approval.Looks(data) {
		return nil, fault.Failed("`sluice pass GATE -o FILE` writes one", "%s: it is nothing that sluice wrote to be signed", clean(file))
	}
	return data, err
}

// writeSigned writes a file that a person carries, never over another.
func (a *app) writeSigned(file string, data []byte, says string) error {
	if file == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	err := atomicfile.WriteNew(file, data, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Failed("remove it, or name another", "%s is there already", clean(file))
	}
	if err == nil {
		a.Note("written: %s", clean(file))
		a.Note("%s", says)
	}
	return err
}

// signingKey is what ssh-keygen is to sign with.
type signingKey struct {
	file   string // its private or public half
	public string // where file is to be made for the call: the key is in ssh-agent
	says   string
}

// keyFor finds a key to sign with: the named one, else one of the approvers that is at hand, hardware first.
func (a *app) keyFor(ctx context.Context, p *place, file string, approvers []string) (signingKey, error) {
	if file != "" {
		if !layout.IsFile(file) {
			return signingKey{}, fault.Misused("name the file of the private key, or of the public one where ssh-agent has the private one", "--key %s: no such file", clean(file))
		}
		return signingKey{file: file, says: clean(file)}, nil
	}
	store := approval.Store{State: p.state}
	list, err := store.Load()
	if err != nil {
		return signingKey{}, err
	}
	if len(list.Signers) == 0 {
		return signingKey{}, fault.Failed("`sluice keys add FILE.pub --name NAME` says whose signature counts here", "the answer has to be signed, and no approver is set up in this repo")
	}
	held := a.heldByAgent(ctx)
	var found []signingKey
	for _, s := range byStrength(list.Signers) {
		if len(approvers) > 0 && !slices.ContainsFunc(approvers, func(n string) bool {
			return slices.ContainsFunc(s.Names, func(o string) bool { return strings.EqualFold(o, n) })
		}) {
			continue
		}
		private := a.privateOf(s, store.Places())
		says := fmt.Sprintf("the key of %s (%s)", s.Names[0], kindWord(s))
		switch {
		case private != "" && !slices.Contains(held, s.Key):
			found = append(found, signingKey{file: private, says: says})
		case slices.Contains(held, s.Key):
			if public, err := s.Public(); err == nil {
				found = append(found, signingKey{public: public, says: says + ", by ssh-agent"})
			}
		}
	}
	if len(found) == 0 {
		who := "any approver"
		if len(approvers) > 0 {
			who = strings.Join(approvers, " or ")
		}
		return signingKey{}, fault.Failed("--key FILE names it; or write what is to be signed with --unsigned -o FILE and sign it where the key is", "no key of %s is at hand, neither in ~/.ssh nor in ssh-agent", clean(who))
	}
	return found[0], nil
}

// byStrength puts keys that want a touch first.
func byStrength(in []approval.Signer) []approval.Signer {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b approval.Signer) int {
		switch {
		case a.Hardware() == b.Hardware():
			return 0
		case a.Hardware():
			return -1
		}
		return 1
	})
	return out
}

// heldByAgent gives the fingerprints of the keys that ssh-agent has.
func (a *app) heldByAgent(ctx context.Context) []string {
	var out []string
	for _, s := range a.agentKeys(ctx) {
		out = append(out, s.Key)
	}
	return out
}

// agentKeys are the keys that ssh-agent has; none where there is no agent.
func (a *app) agentKeys(ctx context.Context) []approval.Signer {
	if a.Getenv("SSH_AUTH_SOCK") == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askAgentIn)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh-add", "-L")
	cmd.Env = a.Env
	out, err := cmd.Output()
	if err != nil {
		return nil // it has none, or is not there
	}
	var found []approval.Signer
	for line := range bytes.Lines(out) {
		if s, err := approval.ParseKey(line); err == nil {
			found = append(found, s)
		}
	}
	return found
}

// privateOf finds the private half of a key: where it was when it was added, or in ~/.ssh. "" = not on this machine.
func (a *app) privateOf(s approval.Signer, places map[string]string) string {
	var files []string
	if f := places[s.Key]; f != "" {
		files = append(files, f+".pub")
	}
	if home := a.Getenv("HOME"); home != "" {
		more, _ := filepath.Glob(filepath.Join(home, ".ssh", "*.pub")) // the pattern is well formed
		files = append(files, more...)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if k, err := approval.ParseKey(data); err == nil && k.Key == s.Key && layout.IsFile(strings.TrimSuffix(f, ".pub")) {
			return strings.TrimSuffix(f, ".pub")
		}
	}
	return ""
}

// sign has ssh-keygen sign a text: it asks for a passphrase or a touch itself.
func (a *app) sign(ctx context.Context, key signingKey, text []byte, namespace string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, signIn)
	defer cancel()
	file := key.file
	if key.public != "" {
		dir, err := os.MkdirTemp("", "sluice-key-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, "key.pub")
		if err := os.WriteFile(file, []byte(key.public+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", file)
	cmd.Env, cmd.Stdin = a.Env, bytes.NewReader(text)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if f, ok := console.Terminal(a.Err); ok {
		cmd.Stderr = f // what it asks of the person
	}
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fault.Failed("install OpenSSH's client (apt-get install openssh-client)", "ssh-keygen is not there to sign with")
		}
		return nil, fault.Failed("try it by hand: ssh-keygen -Y sign -n "+namespace+" -f "+clean(cmp.Or(key.file, "KEY")), "ssh-keygen did not sign: %v: %s", err, oneLine(said.String()))
	}
	return approval.Join(text, out.Bytes()), nil
}
