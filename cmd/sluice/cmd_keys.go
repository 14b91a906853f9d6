package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/approval"
	"sluice/internal/console"
	"sluice/internal/decide"
	"sluice/internal/doctor"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

func keysCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "manage the keys that may sign at the gates of this repo",
		Long: `A gate with approvers, or with trust: signed, takes only decisions that one of these keys signed.
The list is in the state folder, out of reach of agents in a sandbox. Best is a key on a security
token that must be touched (ssh-keygen -t ed25519-sk); next best, a key with a passphrase.`,
		Example: "sluice keys add ~/.ssh/id_ed25519_sk.pub --name ann@example.org\nsluice keys ls\nsluice keys rm " +
			"ann@example.org --why \"token lost\"",
		Args: cobra.ArbitraryArgs, RunE: console.Group,
	}
	cmd.AddCommand(keysAddCommand(a), keysListCommand(a), keysRemoveCommand(a), keysCheckCommand(a), keysSignCommand(a),
		keysDaemonCommand(a))
	return cmd
}

func (a *app) forKeys() error { return a.forPersons("manages keys", "leave the keys to a person") }

// keysPlace finds the repo for a caller who may change or use the list: no agent.
func (a *app) keysPlace(ctx context.Context) (*workspace.Workspace, error) {
	if err := a.forKeys(); err != nil {
		return nil, err
	}
	return a.place(ctx)
}

func keysAddCommand(a *app) *cobra.Command {
	var names []string
	var agent, phone bool
	var page string
	cmd := &cobra.Command{
		Use: "add [FILE.pub]", Short: "add a key that may sign",
		Long: `Adds the public key in a file, or with --agent the one key in ssh-agent. With --passkey it prints a
link and a QR code for the person's phone, which creates a passkey at the daemon's page; compare the
fingerprints, and it is added. Specs name the first --name in approvers. Further names (account,
e-mail address) belong to the same person; by them sluice knows who worked on a step, because nobody
approves their own work.`,
		Example: "sluice keys add ~/.ssh/id_ed25519_sk.pub --name ann@example.org --name ann\nsluice keys add --agent " +
			"--name ann@example.org\nsluice keys add --passkey --name ann@example.org",
		Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := len(args)
			for _, flag := range []bool{agent, phone} {
				if flag {
					given++
				}
			}
			if given != 1 {
				return fault.Misused("usage: "+cmd.UseLine(), "name the file of a public key, or give --agent or --passkey")
			}
			if len(names) == 0 {
				return fault.Misused("give --name, such as --name ann@example.org: specs name it in approvers",
					"sluice keys add: --name is missing")
			}
			p, err := a.keysPlace(cmd.Context())
			if err != nil {
				return err
			}
			if phone {
				return keysAddPasskey(cmd.Context(), &a.Console, p, page, names)
			}
			return keysAdd(cmd.Context(), &a.Console, p, args, names)
		},
	}
	cmd.Flags().StringArrayVar(&names, "name", nil, "a `NAME` of the person; repeatable")
	cmd.Flags().BoolVar(&agent, "agent", false, "add the key in ssh-agent")
	cmd.Flags().BoolVar(&phone, "passkey", false, "have a phone or a security token create a passkey")
	cmd.Flags().StringVar(&page, "url", "", "with --passkey: the `URL` of the page, if it is not the daemon's")
	return cmd
}

func keysAdd(ctx context.Context, con *console.Console, p *workspace.Workspace, args, names []string) error {
	key, file, err := keyGiven(ctx, con, args)
	if err != nil {
		return err
	}
	if key.Site != "" {
		return fault.Failed("register it there: sluice keys add --passkey", "%s is a passkey, which counts only at its page",
			key.Key)
	}
	key.Names = names
	store, ring := approval.Store{State: p.State}, decide.Keyring(con)
	private := ""
	if file != "" && layout.IsFile(strings.TrimSuffix(file, ".pub")) && strings.HasSuffix(file, ".pub") {
		private = strings.TrimSuffix(file, ".pub")
	} else {
		private = ring.Private(key, nil)
	}
	if u, err := user.Current(); err == nil && (private != "" || slices.Contains(ring.Held(ctx), key.Key)) &&
		!slices.Contains(names, u.Username) && approval.CheckNames([]string{u.Username}) == nil {
		key.Names = append(key.Names, u.Username) // whoever types this owns the key
	}
	if err := workspace.MakeState(p.State); err != nil {
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
	con.Print("%s counts now as %s (%s)", key.Key, strings.Join(key.Names, ", "), key.KindWord())
	for _, c := range doctor.Key(ctx, ring, key, store.Places(), reachOf(ctx, con, p)) {
		if c.State != "ok" {
			con.Note("%s %s", con.PaintErr(console.Yellow, "mind:"), oneLine(c.Says))
			con.Note("  → %s", oneLine(c.Advice))
		}
	}
	return nil
}

// keyGiven reads the named public key, or the one in ssh-agent.
func keyGiven(ctx context.Context, con *console.Console, args []string) (key approval.Signer, file string, err error) {
	if len(args) == 0 {
		held := decide.Keyring(con).AgentKeys(ctx)
		switch {
		case len(held) == 0:
			return key, "", fault.Failed("ssh-add FILE gives it one; see `ssh-add -L`",
				"ssh-agent has no key, or does not answer (SSH_AUTH_SOCK)")
		case len(held) > 1:
			return key, "", fault.Failed("`ssh-add -L` lists them: put one into a file and add that",
				"ssh-agent has %d keys", len(held))
		}
		return held[0], "", nil
	}
	if file, err = filepath.Abs(args[0]); err != nil {
		return key, "", err
	}
	data, err := approval.ReadKey(file)
	if err != nil {
		return key, "", err
	}
	if key, err = approval.ParseKey(data); err != nil {
		return key, "", fault.Failed("name the .pub file", "%s: %v", clean(args[0]), err)
	}
	return key, file, nil
}

func keysListCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "ls", Short: "list the keys that count and the revoked keys",
		Long:    "The list has the form of OpenSSH's allowed_signers. The last line of the output names its file.",
		Example: "sluice keys ls\nsluice keys ls --json",
		Args:    console.Between(0, 0),
		RunE: inRepo(a.place, func(_ context.Context, p *workspace.Workspace, _ []string) error {
			store := approval.Store{State: p.State}
			l, err := store.Load()
			if err != nil {
				return err
			}
			if a.JSON {
				return keysDocument(&a.Console, store, l)
			}
			t := &console.Table{Columns: []console.Column{{}, {}, {Fit: console.Below}}}
			key := func(name, key, words string) {
				t.Row(console.Styled(name, console.Plain), console.Styled(key, console.Plain), console.Styled(words, console.Dim))
			}
			for _, s := range l.Signers {
				key(s.Names[0], s.Key, s.KindWord()+also(s.Names))
			}
			for _, r := range l.Revoked {
				key(r.Names[0], r.Key, "revoked "+r.At.UTC().Format("2006-01-02 15:04Z")+" "+clean(r.Why))
			}
			a.PrintTable(t)
			if len(l.Signers) == 0 {
				a.Note("no key counts here: `sluice keys add FILE.pub --name NAME`")
				return nil
			}
			a.Note("%s", store.ListFile())
			return nil
		}),
	})
}

func also(names []string) string {
	if len(names) < 2 {
		return ""
	}
	return "; also " + strings.Join(names[1:], ", ")
}

func keysDocument(con *console.Console, store approval.Store, l approval.List) error {
	type key struct {
		Names []string `json:"names"`
		Key   string   `json:"key"`
		Kind  string   `json:"kind"`
		Touch bool     `json:"touch"`
		Page  string   `json:"page,omitempty"` // where a passkey counts
	}
	keys := []key{}
	for _, s := range l.Signers {
		keys = append(keys, key{s.Names, s.Key, s.Kind, s.Hardware(), l.Passkeys[s.Key].Origin})
	}
	return con.Document(map[string]any{"file": store.ListFile(), "keys": keys,
		"revoked": append([]approval.Revoked{}, l.Revoked...)})
}

func keysRemoveCommand(a *app) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "rm KEY|NAME", Short: "revoke a key, so that it no longer counts",
		Long: `Takes effect at once, also for signatures that have not been handed in. Earlier decisions stay. The
key cannot be added again.`,
		Example: "sluice keys rm ann@example.org --why \"token lost\"\nsluice keys rm SHA256:eUbM…",
		Args:    console.Between(1, 1),
		RunE: inRepo(a.keysPlace, func(_ context.Context, p *workspace.Workspace, args []string) error {
			return keysRemove(&a.Console, p, args[0], why)
		}),
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, in `WORDS`, shown to anybody who signs with the key")
	return cmd
}

func keysRemove(con *console.Console, p *workspace.Workspace, what, why string) error {
	store := approval.Store{State: p.State}
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
		if yes, err := con.Ask(fmt.Sprintf("Revoke %s of %s? Its signatures no longer count.", s.Key,
			s.Names[0])); err != nil || !yes {
			return errors.Join(err, notDone(err))
		}
		by := ""
		if u, err := user.Current(); err == nil {
			by = u.Username
		}
		if err := store.Revoke(approval.Revoked{Key: s.Key, At: con.Now().UTC(), Why: oneLine(why), By: by}); err != nil {
			return err
		}
		con.Print("%s of %s is revoked", s.Key, s.Names[0])
	}
	return nil
}

func keysCheckCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "check", Short: "check that agents cannot use the keys",
		Long: "Looks for the private keys on this machine: in ~/.ssh, in ssh-agent, and at the path from which\neach " +
			"was added. `sluice doctor` makes the same check.",
		Example: "sluice keys check\nsluice keys check --json",
		Args:    console.Between(0, 0),
		RunE: inRepo(a.place, func(ctx context.Context, p *workspace.Workspace, _ []string) error {
			return doctor.Print(&a.Console, checkKeys(ctx, &a.Console, p))
		}),
	})
}

// checkKeys checks whether an agent could use a valid key, and whether anybody can pass each gate.
func checkKeys(ctx context.Context, con *console.Console, p *workspace.Workspace) []doctor.Check {
	return doctor.Keys(ctx, decide.Keyring(con), approval.Store{State: p.State}, p.Root, reachOf(ctx, con, p))
}

// reachOf returns what the agents of a repo can read.
func reachOf(ctx context.Context, con *console.Console, p *workspace.Workspace) doctor.Reach {
	s, err := workspace.Settings(con, p.Root, nil)
	if err != nil {
		return doctor.Reach{Unheld: "the settings cannot be read", Root: p.Root, Home: con.Getenv("HOME")}
	}
	return doctor.ReachOf(ctx, p.Root, con.Getenv("HOME"), s.Sandbox)
}

func keysSignCommand(a *app) *cobra.Command {
	var key, out string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "sign a decision, on the machine where your key is",
		Long: `FILE was written by "sluice pass GATE --unsigned -o FILE". It is shown, and signed after a yes.
Without sluice: ssh-keygen -Y sign -n sluice-gate -f KEY FILE, then cat FILE FILE.sig > FILE.signed`,
		Example: "sluice keys sign pass.txt --key ~/.ssh/id_ed25519_sk\nsluice keys sign pass.txt --key " +
			"~/.ssh/id_ed25519_sk -o pass.signed",
		Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.forKeys(); err != nil {
				return err
			}
			if key == "" {
				return fault.Misused("name the file of your key: --key ~/.ssh/id_ed25519_sk", "sluice keys sign: --key is missing")
			}
			out = cmp.Or(out, args[0]+".signed")
			return keysSign(cmd.Context(), &a.Console, args[0], key, out)
		},
	}
	cmd.Flags().StringVar(&key, "key", "",
		"the `FILE` of the private key, or of the public one where ssh-agent has the private one")
	cmd.Flags().StringVarP(&out, "out", "o", "", "the `FILE` to write (FILE.signed)")
	return cmd
}

func keysSign(ctx context.Context, con *console.Console, file, keyFile, out string) error {
	said, err := approval.ReadSigned(file)
	if err != nil {
		return err
	}
	if _, err := approval.ParseApproval(said); err != nil {
		return fault.Failed("write it again: sluice pass GATE --unsigned -o FILE", "%s: %v", clean(file), err)
	}
	for line := range strings.Lines(string(said)) { // whole: it is what the signature says
		con.Note("  %s", strings.TrimSpace(text.Reveal(text.Seen(line))))
	}
	if yes, err := con.Ask("Sign this?"); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	key, err := decide.Keyring(con).Find(ctx, approval.Store{}, keyFile, nil)
	if err != nil {
		return err
	}
	whole, err := decide.Keyring(con).Sign(ctx, key, said, approval.GateNamespace)
	if err != nil {
		return err
	}
	return decide.WriteSigned(con, out, whole, "hand it in: sluice pass GATE --signed "+clean(out)+", where the repo is")
}

func keysDaemonCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use: "daemon", Short: "print the public key of this repo's daemon, for a policy",
		Long: `The key signs evidence about runs (sluice attest) and counts at no gate. It is created when first
needed, in the state folder, out of reach of agents in a sandbox. The line goes below signers in the
policy of sluice verify.`,
		Example: "sluice keys daemon\nsluice keys daemon --json",
		Args:    console.Between(0, 0),
		RunE: inRepo(a.keysPlace, func(_ context.Context, p *workspace.Workspace, _ []string) error {
			if err := workspace.MakeState(p.State); err != nil {
				return err
			}
			key, err := approval.Store{State: p.State}.OwnKey()
			if err != nil {
				return err
			}
			line, err := key.Line("daemon@" + p.ID)
			if err != nil {
				return err
			}
			return a.answer(map[string]any{"line": line, "key": key.Key}, line)
		}),
	})
}
