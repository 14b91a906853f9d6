package launch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Conversation is the conversation of an agent's attempt as its program keeps it. A person can
// continue it.
type Conversation struct {
	Agent   string            `json:"agent"`
	Format  string            `json:"format"`
	Session string            `json:"session,omitempty"` // "" = it had none yet
	Dir     string            `json:"dir"`               // where the agent worked, absolute
	Env     map[string]string `json:"env,omitempty"`     // what the program needs to find it
	Argv    []string          `json:"argv,omitempty"`    // opens it; nil = there is none

	// Home is the private home in which a held launch kept it; "" = the launch was not held.
	Home string
}

// FindConversation returns the newest conversation of an attempt whose newest launch is k. All but
// its ID comes from the state folder, which the agent cannot write. The ID is from the agent's
// output, and must look like one.
func FindConversation(root, state, run, step string, n, k int) (c Conversation, err error) {
	l := layout.Layout{Root: root, State: state}
	var b tree.Begin
	err = layout.Load(l.AttemptFile(run, step, n, layout.BeganFile), &b)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	c.Dir = cmp.Or(b.Dir, root)
	for ; k > 0; k-- {
		key := fmt.Sprintf("%s/%s#%d.%d", run, step, n, k)
		p, ok := programOf(l, key)
		if !ok {
			continue
		}
		if c.Agent == "" {
			c.Agent, c.Format = p.Agent, p.Format
		}
		s := NewStream(p.Format, time.Now)
		if s == nil {
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(l.LaunchDir(run, step, n, k)))
		for _, name := range []string{"stdout", "stdout" + agents.TailSuffix} {
			s.More(dir, name)
		}
		id := s.Reader.Result().Session
		if !plainID(id) {
			continue
		}
		c.Agent, c.Format, c.Session, c.Env, c.Argv = p.Agent, p.Format, id, p.Env, program.Resume(p.Format, id)
		if home := homeOf(l, key, Holder(l, key, false)); layout.IsDir(home) {
			if c.Home, c.Env = home, nil; !program.KeepsFiles(p.Format) {
				c.Session, c.Argv = "", nil // it cannot be told apart in that home
			}
		}
		return c, nil
	}
	return c, nil
}

// maxTalk is how many bytes of a conversation are copied.
const maxTalk = 64 << 20

// Import copies a held agent's conversation to where the person's own program looks for it; others
// are there already. It copies nothing else: settings could name commands, which would run with the
// person's rights. env returns the person's variables.
func (c Conversation) Import(env func(string) string) error {
	if c.Home == "" || c.Session == "" {
		return nil
	}
	for name, below := range program.Homes(c.Format) {
		to := cmp.Or(env(name), filepath.Join(env("HOME"), below))
		from := filepath.Join(c.Home, below)
		rel := program.Transcript(c.Format, from, c.Session)
		if rel == "" {
			return fmt.Errorf("conversation %s: its program has kept none in %s", c.Session, from)
		}
		data, _, err := atomicfile.OpenRegular(from, rel, maxTalk)
		if err != nil {
			return fmt.Errorf("conversation %s: %w", c.Session, err)
		}
		at := filepath.Join(to, rel)
		if there, err := os.ReadFile(at); err == nil && !bytes.HasPrefix(data, there) {
			return fmt.Errorf("conversation %s: %s has gone on without the agent, and is left as it is", c.Session, at)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := atomicfile.Write(at, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// plainID reports whether a conversation's ID is safe for a shell and as a program's argument.
func plainID(s string) bool {
	if s == "" || len(s) > 100 || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	}) < 0
}
