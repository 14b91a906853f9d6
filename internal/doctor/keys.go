package doctor

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	cage "sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/specs"
)

// Keys says of each key that counts whether an agent could use it, and of each gate whether anybody can pass it.
func Keys(ctx context.Context, ring approval.Keyring, store approval.Store, root string, reach Reach) []Check {
	l, err := store.Load()
	if err != nil {
		return []Check{Broken("keys", "", "%v", err)}
	}
	all, _ := specsOf(root) // another check tells why not
	out := append(approvers(all, l), forgeOf(all)...)
	if len(l.Signers) == 0 {
		return out
	}
	places := store.Places()
	for _, s := range l.Signers {
		out = append(out, Key(ctx, ring, s, places, reach)...)
	}
	return out
}

// Key returns what to mind about one key.
func Key(ctx context.Context, ring approval.Keyring, s approval.Signer, places map[string]string, reach Reach) []Check {
	const better = "create a key on a security token (ssh-keygen -t ed25519-sk), or give this one a passphrase: " +
		"ssh-keygen -p -f FILE"
	who := s.Names[0]
	if s.Site != "" {
		return []Check{Fine("keys", "%s: %s, which asks who uses it", who, s.KindWord())}
	}
	if s.Hardware() {
		return []Check{Fine("keys", "%s: on a security token that must be touched", who)}
	}
	if file := ring.Private(s, places); file != "" {
		data, err := approval.ReadKey(file)
		if err != nil {
			return []Check{Fine("keys", "%s: its private key cannot be read here", who)}
		}
		plain, err := approval.Plain(data)
		seen := reach.of(file)
		switch {
		case err != nil:
			return []Check{Warned("keys", better, "%s: %s is not a readable key: it may have no passphrase", who, file)}
		case plain && seen != "":
			return []Check{Warned("keys", better,
				"%s: the private key %s has no passphrase and agents can reach it (%s): one could sign with it", who, file, seen)}
		case plain:
			return []Check{Fine("keys", "%s: %s has no passphrase; the sandbox hides it from agents", who, file)}
		}
	}
	if reach.Unheld != "" && slices.Contains(ring.Held(ctx), s.Key) {
		return []Check{Warned("keys", "let ssh-agent ask each time (ssh-add -c FILE), or turn the sandbox on",
			"%s: ssh-agent has the key and agents can reach it (%s): one could sign with it", who, reach.Unheld)}
	}
	return []Check{Fine("keys", "%s: %s", who, s.KindWord())}
}

// Reach is what the agents of a repo can read.
type Reach struct {
	Unheld     string // why no sandbox holds them; "" = one does
	Root, Home string
	shown      []string // what the settings of the sandbox show them besides
}

// ReachOf finds out whether a sandbox holds the agents of a repo.
func ReachOf(ctx context.Context, root, home string, s settings.Sandbox) Reach {
	c := Reach{Root: root, Home: home}
	for _, f := range slices.Concat(s.Read, s.Write) {
		if rest, ok := strings.CutPrefix(f, "~"); ok {
			f = filepath.Join(home, rest)
		}
		c.shown = append(c.shown, f)
	}
	if s.Mode == settings.SandboxOff {
		c.Unheld = "the sandbox is off"
		return c
	}
	self, err := os.Executable()
	if err == nil {
		_, err = cage.Find(ctx, self, "")
	}
	if err != nil {
		c.Unheld = "no sandbox holds them: " + err.Error()
	}
	return c
}

// of returns how an agent gets at a file; "" where a sandbox hides it.
func (c Reach) of(file string) string {
	if c.Unheld != "" {
		return c.Unheld
	}
	file = real(file)
	for _, dir := range append([]string{c.Root}, c.shown...) {
		if layout.Inside(real(dir), file) {
			return "the sandbox shows them " + dir
		}
	}
	if (cage.Plan{Home: real(c.Home), InPlace: runtime.GOOS == "darwin"}).Sees(file) {
		return "the sandbox shows them the folders of the system"
	}
	return ""
}

// real returns a path without links, as far as it can be followed.
func real(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return path
}

// specsOf returns the specs of the repo that can be read.
func specsOf(root string) (out []*engine.Spec, err error) {
	files, err := specs.Find(root)
	for _, f := range files {
		if spec, faults := specs.LoadFile(f); len(faults) == 0 {
			out = append(out, spec)
		}
	}
	return out, err
}

// forgeOf warns where a workflow needs gh, and it is not installed.
func forgeOf(all []*engine.Spec) []Check {
	for _, spec := range all {
		does := ""
		switch {
		case spec.AtForge(), spec.OnDone.Land == engine.LandPR:
			does = "opens pull requests"
		case spec.On != nil && spec.On.Trigger(engine.OnIssue) != nil:
			does = "looks for issues"
		default:
			continue
		}
		if _, err := exec.LookPath("gh"); err != nil {
			return []Check{Warned("forge", "install gh (https://cli.github.com) and log in: gh auth login",
				"%s %s, and gh is not installed", spec.ID, does)}
		}
		return nil
	}
	return nil
}

// approvers warns of gates that nobody can pass.
func approvers(all []*engine.Spec, l approval.List) []Check {
	var out []Check
	for _, spec := range all {
		for _, g := range spec.Gates {
			want := g.Reviewer.Approvers
			if len(want) == 0 && g.Reviewer.Trust != engine.TrustSigned {
				continue
			}
			if g.Reviewer.AtForge() { // a comment there counts too
				continue
			}
			some := slices.ContainsFunc(l.Signers, func(s approval.Signer) bool { return len(want) == 0 || s.Named(want) })
			if !some {
				who := cmp.Or(strings.Join(want, " or "), "anybody")
				out = append(out, Warned("keys", "`sluice keys add FILE.pub --name NAME`",
					"gate %s of %s needs a signature of %s, who have no key here: nobody can pass it", g.ID, spec.ID, who))
			}
		}
	}
	return out
}
