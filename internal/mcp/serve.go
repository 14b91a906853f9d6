package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Bounds of what an agent may ask.
const (
	maxMessage = 1 << 20          // bytes of one message of the protocol
	maxCalls   = 16               // at a time; a further one is refused
	maxWait    = 10 * time.Minute // that a call waits for something to happen
	maxRuns    = 50               // runs listed: all that live, then the newest
	maxWords   = 16 << 10         // bytes of a summary or a question
	maxShown   = 16 << 10         // bytes of a text of others that is shown: feedback, an answer
	maxPrompt  = 48 << 10         // bytes of a prompt that is shown; clients cut what is much longer
	maxFailed  = 10               // failures told, the newest
	maxAnswers = 64 << 10         // bytes of answers told, in all
)

// Repo is whoever serves a repo. A daemon.Client is one.
type Repo interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	Run(ctx context.Context, run string) (daemon.RunStatus, error)
	Spec(ctx context.Context, run string) (string, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	Offers(ctx context.Context) ([]daemon.Offer, error)
	Do(ctx context.Context, ev engine.Event, via string) (daemon.Done, error)
}

// Work is what is prepared for whoever takes an offered step. Paths are as seen from its worktree.
type Work struct {
	Prompt  string   `json:"-"`       // whole
	Inputs  []string `json:"inputs"`  // files to read
	Outputs []string `json:"outputs"` // files to make
}

// Options are what Serve needs.
type Options struct {
	Root    string // the repo
	Version string
	In      io.Reader
	Out     io.Writer
	// Open gives whoever serves the repo now, and what lets go of it.
	Open func(ctx context.Context) (Repo, func(), error)
	// Work reads what is prepared for an offer.
	Work func(ctx context.Context, o daemon.Offer) (Work, error)
}

// Serve answers one client until it closes In, or ctx ends.
func Serve(ctx context.Context, opt Options) error {
	s := &server{opt: opt, life: ctx, calls: make(chan struct{}, maxCalls)}
	srv := sdk.NewServer(&sdk.Implementation{Name: "sluice", Title: "sluice: " + opt.Root, Version: opt.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}})
	look := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	act := &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(bool)}
	tool(srv, s, "list", listText, look, nil, s.list)
	tool(srv, s, "next", nextText, act, nil, s.next)
	tool(srv, s, "claim", claimText, act, nil, s.claim)
	tool(srv, s, "context", contextText, look, nil, s.context)
	tool(srv, s, "signal", signalText, act, json.RawMessage(signalSchema), s.signal)
	tool(srv, s, "evaluate", evaluateText, look, nil, s.evaluate)
	err := srv.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(opt.In), Writer: keptOpen{opt.Out},
		MaxLineLength: maxMessage})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keptOpen is a writer that is not ours to close.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// What an agent reads of the tools.
const (
	instructions = `sluice runs workflows of steps and gates. Some steps are not launched by sluice: they are ` +
		`on offer, and you have them done.
Repeat until next reports that nothing is left: next with claim takes a step and returns its prompt; ` +
		`have it done in its worktree, by a subagent or yourself, exactly as the prompt says; ` +
		`signal reports that it is done, failed or blocked; evaluate waits for the gate that judges it. ` +
		`If a gate fails, next offers the step again with the findings.
You never decide a gate. If a person is asked, inform your user and continue with other steps on offer.`
	listText = "The runs of this repo, and what each waits for. With run: that run, step by step."
	nextText = "The oldest step that is on offer and that nobody has claimed: its prompt, where to work, its " +
		"inputs and outputs, how to report that it is done. claim takes it at once; wait_seconds waits until there is one."
	claimText   = "Takes a step that is on offer, so that nobody else does it."
	contextText = "Everything about a step: its prompt, its inputs, what failed before and why, the answers of other " +
		"steps. Without step: the spec of the run."
	signalText = "Reports that a claimed step is done, failed or blocked. After done, its outputs and criteria are " +
		"checked and its gate judges it; blocked asks a person a question."
	evaluateText = "Waits until the gate has judged a signalled step, and returns the outcome: passed, failed (with " +
		"the feedback), or that a person is asked. No argument influences the gate."
)

type server struct {
	opt   Options
	life  context.Context // of Serve: the SDK ends a call with its client, but not with this
	calls chan struct{}
}

// tool adds a tool; without a schema its arguments are those of In. Its errors are told to the
// agent, in the words a person would be told.
func tool[In any](srv *sdk.Server, s *server, name, text string, notes *sdk.ToolAnnotations, schema any,
	fn func(context.Context, Repo, In) (any, error)) {
	sdk.AddTool(srv, &sdk.Tool{Name: name, Description: text, Annotations: notes, InputSchema: schema},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			if err := read(req.Params.Arguments, &in); err != nil {
				return nil, nil, fmt.Errorf("%s: arguments: %w", name, err)
			}
			select {
			case s.calls <- struct{}{}:
				defer func() { <-s.calls }()
			default:
				return nil, nil, fmt.Errorf("%s: %d calls are under way: wait for one of them", name, maxCalls)
			}
			repo, done, err := s.opt.Open(ctx)
			if err != nil {
				return nil, nil, err
			}
			defer done()
			out, err := fn(ctx, repo, in)
			if err == nil {
				out, err = revealed(out)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			return nil, out, nil
		})
}

// read reads arguments as they were sent. The SDK has read them too, but rounds numbers, and of doubled keys it
// takes the last.
func read(raw json.RawMessage, in any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := strictjson.Object(raw, maxMessage); err != nil {
		return err
	}
	return json.Unmarshal(raw, in)
}

// revealed is out as JSON whose texts hide nothing: answers, findings and values of vars are of other agents, and what
// a person who reads along does not see could instruct this one.
func revealed(out any) (json.RawMessage, error) {
	data, err := json.Marshal(out)
	var safe []byte
	for err == nil && len(data) > 0 {
		n := bytes.IndexByte(data, '"')
		if n < 0 {
			return append(safe, data...), nil
		}
		safe, data = append(safe, data[:n]...), data[n:]
		var s string
		in := json.NewDecoder(bytes.NewReader(data))
		if err = in.Decode(&s); err == nil {
			quoted, _ := json.Marshal(text.Reveal(s)) // a text cannot fail
			safe, data = append(safe, quoted...), data[in.InputOffset():]
		}
	}
	return safe, err
}

// wait is how long a call may wait, of the seconds that were asked for.
func wait(seconds int) (time.Duration, error) {
	if seconds < 0 || seconds > int(maxWait/time.Second) {
		return 0, fmt.Errorf("wait_seconds %d: want 0 to %d: call again to wait for longer", seconds,
			int(maxWait/time.Second))
	}
	return time.Duration(seconds) * time.Second, nil
}

// errStir ends the following of facts at the first.
var errStir = errors.New("something happened")

// againIn is the pause before a service that went away is asked again.
const againIn = 200 * time.Millisecond

// until looks, and again after each fact (of the run; "" = of any), until look is content, the time
// is over or nobody waits for the answer any more.
func (s *server) until(ctx context.Context, repo Repo, run string, within time.Duration,
	look func() (bool, error)) error {
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for {
		st, err := repo.Status(ctx, run) // before the look: what happens during it has a later number
		if err == nil && st.Stalled != "" {
			err = fmt.Errorf("the journal cannot be written (%s): nothing goes on until a person has fixed it", st.Stalled)
		}
		if err != nil {
			return err
		}
		done, err := look()
		if done || err != nil || within == 0 {
			return err
		}
		err = repo.Facts(soon, run, st.Seq+1, true, func(daemon.Line) error { return errStir })
		if !errors.Is(err, errStir) {
			select {
			case <-soon.Done():
			case <-time.After(againIn):
			}
		}
		if soon.Err() != nil {
			_, err := look()
			return errors.Join(ctx.Err(), err)
		}
	}
}

// shown makes a text of others safe and short to read.
func shown(s string) string {
	s = text.Reveal(s)
	if len(s) <= maxShown {
		return s
	}
	return text.Reveal(s[:maxShown]) + "\n[cut]"
}
