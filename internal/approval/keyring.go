package approval

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// signIn is how long a person may take to type a passphrase or to touch a key.
const signIn = 5 * time.Minute

// askAgentIn bounds a question to ssh-agent.
const askAgentIn = 5 * time.Second

// Keyring has the private keys of this machine: those of ~/.ssh, of ssh-agent, and those that were named.
type Keyring struct {
	Env      []string
	Home     string   // "" = none
	Agent    bool     // there is an ssh-agent
	Terminal *os.File // where ssh-keygen asks for a passphrase or a touch; nil = none
}

// SigningKey is what ssh-keygen is to sign with.
type SigningKey struct {
	Says string // which it is, for a person

	file   string // its private or public half
	public string // instead of file: the key is in ssh-agent
}

// Find returns a key to sign with: the named file, else that of an approver in the store that is at
// hand, hardware first.
func (r Keyring) Find(ctx context.Context, store Store, file string, approvers []string) (SigningKey, error) {
	if file != "" {
		if !layout.IsFile(file) {
			return SigningKey{},
				fault.Misused("name the file of the private key, or of the public one where ssh-agent has the private one",
					"--key %s: no such file", text.Line(file))
		}
		return SigningKey{file: file, Says: text.Line(file)}, nil
	}
	list, err := store.Load()
	if err != nil {
		return SigningKey{}, err
	}
	if len(list.Signers) == 0 {
		return SigningKey{},
			fault.Failed("add one: `sluice keys add FILE.pub --name NAME`",
				"the answer must be signed, and no approver is set up in this repo")
	}
	held, advice := r.Held(ctx), ""
	for _, s := range byStrength(list.Signers) {
		if len(approvers) > 0 && !s.Named(approvers) {
			continue
		}
		if page := list.Passkeys[s.Key].Origin; page != "" {
			advice = "decide with the passkey at " + page + ", or "
			continue
		}
		private := r.Private(s, store.Places())
		says := fmt.Sprintf("the key of %s (%s)", s.Names[0], s.KindWord())
		switch {
		case private != "" && !slices.Contains(held, s.Key):
			return SigningKey{file: private, Says: says}, nil
		case slices.Contains(held, s.Key):
			if public, err := s.Public(); err == nil {
				return SigningKey{public: public, Says: says + ", by ssh-agent"}, nil
			}
		}
	}
	who := cmp.Or(strings.Join(approvers, " or "), "any approver")
	return SigningKey{},
		fault.Failed(advice+"name it with --key FILE; or write the decision with --unsigned -o FILE and sign it "+
			"where the key is", "no key of %s was found, neither in ~/.ssh nor in ssh-agent", text.Line(who))
}

// byStrength puts keys that want a touch first.
func byStrength(in []Signer) []Signer {
	soft := func(s Signer) bool { return !s.Hardware() }
	return append(slices.DeleteFunc(slices.Clone(in), soft), slices.DeleteFunc(slices.Clone(in), Signer.Hardware)...)
}

// Held returns the fingerprints of the keys that ssh-agent has.
func (r Keyring) Held(ctx context.Context) []string {
	var out []string
	for _, s := range r.AgentKeys(ctx) {
		out = append(out, s.Key)
	}
	return out
}

// AgentKeys are the keys that ssh-agent has; none without an agent.
func (r Keyring) AgentKeys(ctx context.Context) []Signer {
	if !r.Agent {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askAgentIn)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh-add", "-L")
	cmd.Env = r.Env
	out, err := cmd.Output()
	if err != nil {
		return nil // it has none, or is not there
	}
	var found []Signer
	for line := range bytes.Lines(out) {
		if s, err := ParseKey(line); err == nil {
			found = append(found, s)
		}
	}
	return found
}

// Private finds the private half of a key: where it was when it was added, or in ~/.ssh. "" = not on this machine.
func (r Keyring) Private(s Signer, places map[string]string) string {
	var files []string
	if f := places[s.Key]; f != "" {
		files = append(files, f+".pub")
	}
	if r.Home != "" {
		more, _ := filepath.Glob(filepath.Join(r.Home, ".ssh", "*.pub")) // the pattern is well formed
		files = append(files, more...)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if k, err := ParseKey(data); err == nil && k.Key == s.Key && layout.IsFile(strings.TrimSuffix(f, ".pub")) {
			return strings.TrimSuffix(f, ".pub")
		}
	}
	return ""
}

// Sign has ssh-keygen sign a text: it asks for a passphrase or a touch itself.
func (r Keyring) Sign(ctx context.Context, key SigningKey, signed []byte, namespace string) ([]byte, error) {
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
	cmd.Env, cmd.Stdin = r.Env, bytes.NewReader(signed)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if r.Terminal != nil {
		cmd.Stderr = r.Terminal // what it asks of the person
	}
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fault.Failed("install OpenSSH's client (apt-get install openssh-client)",
				"ssh-keygen, which signs, is not installed")
		}
		return nil, fault.Failed("try it by hand: ssh-keygen -Y sign -n "+namespace+" -f "+
			text.Line(cmp.Or(key.file, "KEY")), "ssh-keygen did not sign: %v: %s", err, text.Message(said.String()))
	}
	return Join(signed, out.Bytes()), nil
}

// maxKeyFile bounds the file of a key.
const maxKeyFile = 64 << 10

// ReadKey reads the file of a key, or what a link to it names.
func ReadKey(file string) ([]byte, error) {
	info, err := os.Stat(file) // a link to a key is a key
	if err != nil {
		return nil, fault.Failed("name the file of a key, such as ~/.ssh/id_ed25519.pub", "%s: %w", text.Line(file),
			fault.WithoutPath(err))
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fault.Failed("name the file of a key, such as ~/.ssh/id_ed25519.pub", "%s: it is not a regular file "+
			"of at most %d KiB", text.Line(file), maxKeyFile>>10)
	}
	return os.ReadFile(file)
}

// ReadSigned reads a file of what was written to be signed, signed or not.
func ReadSigned(file string) ([]byte, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	data, err := atomicfile.Read(abs, MaxBytes)
	if err == nil && !Looks(data) {
		return nil, fault.Failed("`sluice pass GATE -o FILE` writes one", "%s: sluice did not write it for signing",
			text.Line(file))
	}
	return data, err
}
