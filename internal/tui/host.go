package tui

import (
	"context"
	"encoding/json"

	"sluice/daemon"
	"sluice/engine"
)

// Host does what the screen needs: it reads, and carries out a person's decisions.
type Host interface {
	// Repos returns the roots of the repos to show. note says what is wrong overall; "" = all well.
	Repos(ctx context.Context) (roots []string, note string, err error)
	// Open returns a View of a repo. served reports whether a process serves it, so that news come
	// too.
	Open(ctx context.Context, root string) (v View, served bool, err error)
	// Served reports whether a process serves the repo now. It is cheap, and disturbs no process
	// that starts.
	Served(ctx context.Context, root string) bool
	// Sign returns the signed text of an answer at a gate in state g. It has the terminal
	// meanwhile, to ask for a passphrase or a touch.
	Sign(ctx context.Context, root string, g daemon.GateStatus, ev engine.Answered) (proof string, err error)
	// Comment has the person comment on the changes of a round in their editor, for a fail or a veto.
	// It has the terminal meanwhile.
	Comment(ctx context.Context, root, run, gate, outcome string) (Comments, error)
	// Pager shows the changes of a step or of a gate's round, as Show has them, in the person's pager.
	// It has the terminal meanwhile.
	Pager(ctx context.Context, root, run, what string, since bool) error
	// Do sends a person's event to the process that serves the repo.
	Do(ctx context.Context, root string, ev engine.Event) (daemon.Done, error)
	// Show returns what a person needs to decide at a gate, or to know about a step, with all its
	// changes or those since the attempt before.
	Show(ctx context.Context, root, run, what string, since bool) (Page, error)
	// Graph returns a function that draws a run's workflow in lines, those of steps and gates with a
	// tab and the state at the end.
	Graph(ctx context.Context, root, run string) (func(daemon.RunStatus) string, error)
	// Words returns the last line that the agent of a step, or the reviewer of a gate, said; "" =
	// none.
	Words(ctx context.Context, root, run, what string) string
	// Tail passes an agent's last lines and what follows to say, cleaned, until ctx ends.
	Tail(ctx context.Context, root, run, what string, say func(line string)) error
}

// RunHost serves the screen of one run. Its only repo is that of the run, and the process that
// serves it is there.
type RunHost interface {
	Host
	View
	Run(ctx context.Context, run string) (daemon.RunStatus, error)
}

// View reports the state of one repo. *daemon.Client is one.
type View interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	Close()
}

// Comments are what a person wrote about the changes of a round.
type Comments struct {
	Round    int    // that was shown in the editor
	Content  string // of that round
	Text     string
	Findings json.RawMessage // the comments on lines
	Given    func()          // to be called once they have counted
}

// Page is a text to scroll, about a step and the gate that judges it.
type Page struct {
	Lines []string // cleaned; may contain colours
	Text  int      // so many of them come before the changes
	Gate  string   // "" = none
	Round int      // of the gate, as shown on the page
	Since bool     // its changes are those since the attempt before
	// Content is the digest of that round's work.
	Content string
}
