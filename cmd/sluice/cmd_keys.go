package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	cage "sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/console"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/specs"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "say whose signature counts at the gates of this repo",
		Long: `A gate with approvers, or with trust: signed, takes only what one of these keys signed. The list
lies in the state folder, out of the reach of agents that a sandbox holds. Best is a key in a token
that wants a touch (ssh-keygen -t ed25519-sk); else one with a passphrase.`,
		Example: "sluice keys add ~/.ssh/id_ed25519_sk.pub --name ann@example.org\nsluice keys ls\nsluice keys rm ann@example.org --why \"token lost\"",
		Args:    cobra.ArbitraryArgs, RunE: console.Group,
	}
	cmd.AddCommand(a.keysAddCommand(), a.keysListCommand(), a.keysRemoveCommand(), a.keysCheckCommand(), a.keysSignCommand())
	return cmd
}

// keysPlace finds the repo for who may change or use the list: no agent.
func (a *app) keysPlace(ctx context.Context) (*place, error) {
	if a.Getenv("SLUICE_TOKEN") != "" {
		return nil, fault.Failed("leave the keys to a person", "keys are a person's, and this is the environment of an attempt (%s)", clean(a.Getenv("SLUICE_RUN")))
	}
	return a.place(ctx)
}

func (a *app) keysAddCommand() *cobra.Command {
	var names []string
	var agent bool
	cmd := &cobra.Command{
		Use: "add [FILE.pub]", Short: "have a key's signature count",
		Long: `Of a public key: a file, or with --agent what ssh-agent has (where that is one key). The first
--name is what specs say in approvers; more of them are other names of the same person (account,
e-mail address), by which sluice knows who worked on a step: nobody approves their own work.`,
		Example: "sluice keys add ~/.ssh/id_ed25519_sk.pub --name ann@example.org --name ann\nsluice keys add --agent --name ann@example.org",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == agent {
				return fault.Misused("usage: "+cmd.UseLine(), "want the file of a public key, or --agent")
			}
			if len(names) == 0 {
				return fault.Misused("give --name, such as --name ann@example.org: specs name it in approvers", "sluice keys add: whose key it is was not said")
			}
			p, err := a.keysPlace(cmd.Context())
			if err != nil {
				return err
			}
			return a.keysAdd(cmd.Context(), p, args, names)
		},
	}
	cmd.Flags().StringArrayVar(&names, "name", nil, "a `NAME` of the person; may be given again")
	cmd.Flags().BoolVar(&agent, "agent", false, "the key that ssh-agent has")
	return cmd
}

func (a *app) keysAdd(ctx context.Context, p *place, args, names []string) error {
	key, file, err := a.keyGiven(ctx, args)
	if err != nil {
		return err
	}
	key.Names = names
	store := approval.Store{State: p.state}
	private := ""
	if file != "" && layout.IsFile(strings.TrimSuffix(file, ".pub")) && strings.HasSuffix(file, ".pub") {
		private = strings.TrimSuffix(file, ".pub")
	} else {
		private = a.privateOf(key, nil)
	}
	if u, err := user.Current(); err == nil && (private != "" || slices.Contains(a.heldByAgent(ctx), key.Key)) && !slices.Contains(names, u.Username) && approval.CheckName(u.Username) == nil {
		key.Names = append(key.Names, u.Username) // the key is of who types this
	}
	if err := makeState(p.state); err != nil {
		return err
	}
	if err := store.Add(key); err != nil {
		return err
	}
	if private != "" {
		if err := store.Place(key.Key, private); err != nil {
			return err
		}
	}
	a.Print("%s counts now as %s (%s)", key.Key, strings.Join(key.Names, ", "), kindWord(key))
	for _, c := range a.checkKey(ctx, p, key, store.Places(), a.sandboxOf(ctx, p)) {
		if c.State != "ok" {
			a.Note("%s %s", a.PaintErr(console.Yellow, "mind:"), oneLine(c.Says))
			a.Note("  → %s", oneLine(c.Advice))
		}
	}
	return nil
}

// keyGiven reads the public key that was named, or the one that ssh-agent has.
func (a *app) keyGiven(ctx context.Context, args []string) (key approval.Signer, file string, err error) {
	if len(args) == 0 {
		held := a.agentKeys(ctx)
		switch {
		case len(held) == 0:
			return key, "", fault.Failed("ssh-add FILE gives it one; see `ssh-add -L`", "ssh-agent has no key, or does not answer (SSH_AUTH_SOCK)")
		case len(held) > 1:
			return key, "", fault.Failed("`ssh-add -L` lists them: put one into a file and add that", "ssh-agent has %d keys", len(held))
		}
		return held[0], "", nil
	}
	if file, err = filepath.Abs(args[0]); err != nil {
		return key, "", err
	}
	data, err := readKey(file)
	if err != nil {
		return key, "", err
	}
	if key, err = approval.ParseKey(data); err != nil {
		return key, "", fault.Failed("name the .pub file", "%s: %v", clean(args[0]), err)
	}
	return key, file, nil
}

// maxKeyFile bounds the file of a key.
const maxKeyFile = 64 << 10

func readKey(file string) ([]byte, error) {
	info, err := os.Stat(file) // a link to a key is a key
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fault.Failed("name the file of a key", "%s: it is no regular file of at most %d KiB", clean(file), maxKeyFile>>10)
	}
	return os.ReadFile(file)
}

func kindWord(s approval.Signer) string {
	kind := strings.TrimSuffix(strings.TrimPrefix(s.Kind, "ssh-"), "@openssh.com")
	if s.Hardware() {
		return strings.TrimPrefix(strings.TrimPrefix(kind, "sk-"), "ssh-") + " in a token, wants a touch"
	}
	return kind
}

func (a *app) keysListCommand() *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "ls", Short: "list the keys that count, and those that were revoked",
		Long:    "The list itself is in the form of OpenSSH's allowed_signers; its last line says where it lies.",
		Example: "sluice keys ls\nsluice keys ls --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			store := approval.Store{State: p.state}
			l, err := store.Load()
			if err != nil {
				return err
			}
			if a.JSON {
				return a.keysDocument(store, l)
			}
			for _, s := range l.Signers {
				a.Print("%s  %s  %s", console.Pad(s.Names[0], 28), s.Key, a.Paint(console.Dim, kindWord(s)+also(s.Names)))
			}
			for _, r := range l.Revoked {
				a.Print("%s  %s  %s", console.Pad(r.Names[0], 28), r.Key, a.Paint(console.Dim, strings.TrimSpace("revoked "+r.At.UTC().Format("2006-01-02 15:04Z")+" "+clean(r.Why))))
			}
			if len(l.Signers) == 0 {
				a.Note("no key counts here: `sluice keys add FILE.pub --name NAME`")
				return nil
			}
			a.Note("%s", store.ListFile())
			return nil
		},
	})
}

func also(names []string) string {
	if len(names) < 2 {
		return ""
	}
	return "; also " + strings.Join(names[1:], ", ")
}

func (a *app) keysDocument(store approval.Store, l approval.List) error {
	type key struct {
		Names []string `json:"names"`
		Key   string   `json:"key"`
		Kind  string   `json:"kind"`
		Touch bool     `json:"touch"`
	}
	keys := []key{}
	for _, s := range l.Signers {
		keys = append(keys, key{s.Names, s.Key, s.Kind, s.Hardware()})
	}
	return a.Document(map[string]any{"file": store.ListFile(), "keys": keys, "revoked": append([]approval.Revoked{}, l.Revoked...)})
}

func (a *app) keysRemoveCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "rm KEY|NAME", Short: "revoke a key: what it signs counts no more",
		Long:    "From this moment, also for what was signed before and has not been handed in. What it decided stays\ndecided. The key cannot be added again.",
		Example: "sluice keys rm ann@example.org --why \"token lost\"\nsluice keys rm SHA256:eUbM…",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.keysPlace(cmd.Context())
			if err != nil {
				return err
			}
			return a.keysRemove(p, args[0], why)
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, in `WORDS`: who signs with it is told")
	return cmd
}

func (a *app) keysRemove(p *place, what, why string) error {
	store := approval.Store{State: p.state}
	l, err := store.Load()
	if err != nil {
		return err
	}
	var found []approval.Signer
	for _, s := range l.Signers {
		if s.Key == what || s.Names[0] == what {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return fault.Failed("`sluice keys ls` lists them", "no key %s", clean(what))
	}
	for _, s := range found {
		if yes, err := a.Ask(fmt.Sprintf("Revoke %s of %s? What it signs counts no more.", s.Key, s.Names[0])); err != nil || !yes {
			return errors.Join(err, notDone(err))
		}
		by := ""
		if u, err := user.Current(); err == nil {
			by = u.Username
		}
		if err := store.Revoke(approval.Revoked{Key: s.Key, At: a.Now().UTC(), Why: oneLine(why), By: by}); err != nil {
			return err
		}
		a.Print("%s of %s is revoked", s.Key, s.Names[0])
	}
	return nil
}

func (a *app) keysCheckCommand() *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "check", Short: "check that agents cannot use the keys",
		Long:    "Looks for the private halves on this machine: in ~/.ssh, in ssh-agent, and where they were when they\nwere added. `sluice doctor` does the same.",
		Example: "sluice keys check\nsluice keys check --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			return doctor.Print(&a.Console, a.checkKeys(cmd.Context(), p))
		},
	})
}

// checkKeys says of each key that counts whether an agent could use it, and of each gate whether anybody can pass it.
func (a *app) checkKeys(ctx context.Context, p *place) []doctor.Check {
	store := approval.Store{State: p.state}
	l, err := store.Load()
	if err != nil {
		return []doctor.Check{doctor.Broken("keys", "", "%v", err)}
	}
	out := a.checkApprovers(p, l)
	if len(l.Signers) == 0 {
		return out
	}
	places, cage := store.Places(), a.sandboxOf(ctx, p)
	for _, s := range l.Signers {
		out = append(out, a.checkKey(ctx, p, s, places, cage)...)
	}
	return out
}

// checkKey says what is to be minded of one key.
func (a *app) checkKey(ctx context.Context, p *place, s approval.Signer, places map[string]string, held cageState) []doctor.Check {
	const better = "make one that wants a touch (ssh-keygen -t ed25519-sk), or give this one a passphrase: ssh-keygen -p -f FILE"
	who := s.Names[0]
	if s.Hardware() {
		return []doctor.Check{doctor.Fine("keys", "%s: in a token that wants a touch", who)}
	}
	if file := a.privateOf(s, places); file != "" {
		data, err := readKey(file)
		if err != nil {
			return []doctor.Check{doctor.Fine("keys", "%s: its private half cannot be read from here", who)}
		}
		plain, err := approval.Plain(data)
		seen := inReach(file, p, held)
		switch {
		case err != nil:
			return []doctor.Check{doctor.Warned("keys", better, "%s: %s cannot be read as a key: whether it has a passphrase is not known", who, file)}
		case plain && seen != "":
			return []doctor.Check{doctor.Warned("keys", better, "%s: the private key %s has no passphrase and is in the reach of agents (%s): one could sign with it", who, file, seen)}
		case plain:
			return []doctor.Check{doctor.Fine("keys", "%s: %s has no passphrase; agents do not see it, as a sandbox holds them", who, file)}
		}
	}
	if held.why != "" && slices.Contains(a.heldByAgent(ctx), s.Key) {
		return []doctor.Check{doctor.Warned("keys", "have it ask each time (ssh-add -c FILE), or turn the sandbox on", "%s: ssh-agent has the key and agents can reach it (%s): one could have it sign", who, held.why)}
	}
	return []doctor.Check{doctor.Fine("keys", "%s: %s", who, kindWord(s))}
}

// cageState is what holds the agents of a repo: why not, where nothing does, and what they see besides.
type cageState struct {
	why   string
	shown []string
	home  string
}

func (a *app) sandboxOf(ctx context.Context, p *place) cageState {
	c := cageState{home: a.Getenv("HOME")}
	s, err := a.settingsOf(p.root, nil)
	if err != nil {
		c.why = "the settings cannot be read"
		return c
	}
	for _, f := range slices.Concat(s.Sandbox.Read, s.Sandbox.Write) {
		if rest, ok := strings.CutPrefix(f, "~"); ok {
			f = filepath.Join(c.home, rest)
		}
		c.shown = append(c.shown, f)
	}
	if s.Sandbox.Mode == settings.SandboxOff {
		c.why = "the sandbox is off"
		return c
	}
	self, err := os.Executable()
	if err == nil {
		_, err = cage.Find(ctx, self, "")
	}
	if err != nil {
		c.why = "no sandbox holds them: " + err.Error()
	}
	return c
}

// inReach says how an agent gets at a file; "" where a sandbox hides it.
func inReach(file string, p *place, c cageState) string {
	if c.why != "" {
		return c.why
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	for _, dir := range append([]string{p.root}, c.shown...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && within(real, file) {
			return "the sandbox shows them " + dir
		}
	}
	home := c.home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if (cage.Plan{Home: home, InPlace: runtime.GOOS == "darwin"}).Sees(file) {
		return "the sandbox shows them the folders of the system"
	}
	return ""
}

func within(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// specsOf are the specs of the repo that can be read.
func specsOf(p *place) []*engine.Spec {
	files, err := specs.Find(p.root)
	if err != nil {
		return nil // told by another check
	}
	var out []*engine.Spec
	for _, f := range files {
		if spec, faults := specs.LoadFile(f); len(faults) == 0 {
			out = append(out, spec)
		}
	}
	return out
}

// checkApprovers warns of gates that nobody can pass.
func (a *app) checkApprovers(p *place, l approval.List) []doctor.Check {
	var out []doctor.Check
	for _, spec := range specsOf(p) {
		for _, g := range spec.Gates {
			want := g.Reviewer.Approvers
			if len(want) == 0 && g.Reviewer.Trust != engine.TrustSigned {
				continue
			}
			some := len(want) == 0 && len(l.Signers) > 0 || slices.ContainsFunc(want, func(n string) bool {
				return slices.ContainsFunc(l.Signers, func(s approval.Signer) bool {
					return slices.ContainsFunc(s.Names, func(o string) bool { return strings.EqualFold(o, n) })
				})
			})
			if !some {
				who := strings.Join(want, " or ")
				if who == "" {
					who = "anybody"
				}
				out = append(out, doctor.Warned("keys", "`sluice keys add FILE.pub --name NAME`", "gate %s of %s wants the signature of %s, and no key of theirs counts here: nobody can pass it", g.ID, spec.ID, who))
			}
		}
	}
	return out
}

func (a *app) keysSignCommand() *cobra.Command {
	var key, out string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "sign what was written to be signed, on whatever machine your key is",
		Long: `FILE is what "sluice pass GATE --unsigned -o FILE" wrote. It is shown, and signed after a yes.
Without sluice: ssh-keygen -Y sign -n sluice-gate -f KEY FILE, then cat FILE FILE.sig > FILE.signed`,
		Example: "sluice keys sign pass.txt --key ~/.ssh/id_ed25519_sk\nsluice keys sign pass.txt --key ~/.ssh/id_ed25519_sk -o pass.signed",
		Args:    console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Getenv("SLUICE_TOKEN") != "" {
				return fault.Failed("leave the keys to a person", "keys are a person's, and this is the environment of an attempt")
			}
			if key == "" {
				return fault.Misused("name the file of your key: --key ~/.ssh/id_ed25519_sk", "sluice keys sign: --key is missing")
			}
			if out == "" {
				out = args[0] + ".signed"
			}
			return a.keysSign(cmd.Context(), args[0], key, out)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the `FILE` of the private key, or of the public one where ssh-agent has the private one")
	cmd.Flags().StringVarP(&out, "out", "o", "", "the `FILE` to write (FILE.signed)")
	return cmd
}

func (a *app) keysSign(ctx context.Context, file, keyFile, out string) error {
	text, err := readSigned(file)
	if err != nil {
		return err
	}
	if _, err := approval.ParseApproval(text); err != nil {
		return fault.Failed("have it written anew: sluice pass GATE --unsigned -o FILE", "%s: %v", clean(file), err)
	}
	for line := range strings.Lines(string(text)) {
		a.Note("  %s", oneLine(line))
	}
	if yes, err := a.Ask("Sign this?"); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	key, err := a.keyFor(ctx, nil, keyFile, nil)
	if err != nil {
		return err
	}
	whole, err := a.sign(ctx, key, text, approval.GateNamespace)
	if err != nil {
		return err
	}
	return a.writeSigned(out, whole, "hand it in: sluice pass GATE --signed "+clean(out)+", where the repo is")
}
