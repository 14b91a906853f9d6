package launch

import (
	"bytes"
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

// Conversation is what an agent's attempt said to its model, as its own program keeps it: a person can go on with it.
type Conversation struct {
	Agent   string            `json:"agent"`
	Format  string            `json:"format"`
	Session string            `json:"session,omitempty"` // "" = it had none yet
	Dir     string            `json:"dir"`               // where the agent worked, absolute
	Env     map[string]string `json:"env,omitempty"`     // what the program needs to find it
	Argv    []string          `json:"argv,omitempty"`    // opens it; nil where there is none to open

	Home string // the private home in which it lies, of a launch that was held by a sandbox; "" = it was not
}

// FindConversation finds the newest conversation of an attempt whose newest launch is k. Who it was, where it worked and
// where its program keeps things is read from the state folder, which the agent cannot write to; the conversation's name
// comes from what the agent printed, and is one only if it looks like one.
func FindConversation(root, state, run, step string, n, k int) (c Conversation, err error) {
	l := layout.Layout{Root: root, State: state}
	var b tree.Begin
	if err := layout.Load(l.AttemptFile(run, step, n, "begin"), &b); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if c.Dir = b.Dir; c.Dir == "" {
		c.Dir = root
	}
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
		_, rest, _ := strings.Cut(key, "/")
		if home := filepath.Join(state, layout.HomesDir, layout.PathElement(run), layout.PathElement(Holder(l, key, rest))); layout.IsDir(home) {
			if c.Home, c.Env = home, nil; !program.KeepsFiles(p.Format) {
				c.Session, c.Argv = "", nil // no telling it from the rest of that home
			}
		}
		return c, nil
	}
	return c, nil
}

// maxTalk is how much of a conversation is copied.
const maxTalk = 64 << 20

// Import copies the conversation of an agent that was held by a sandbox to where the person's own program looks for it;
// others lie there already. Nothing else of the agent's private home is taken over: its settings may name commands, and
// those would run with the person's rights. env gives the person's variables.
func (c Conversation) Import(env func(string) string) error {
	if c.Home == "" || c.Session == "" {
		return nil
	}
	for name, below := range program.Homes(c.Format) {
		to := env(name)
		if to == "" {
			to = filepath.Join(env("HOME"), below)
		}
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

// plainID reports whether a conversation's name is one: nothing that a shell or a program could take for something else.
func plainID(s string) bool {
	if s == "" || len(s) > 100 || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	}) < 0
}
