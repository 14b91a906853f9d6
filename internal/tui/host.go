package tui

import (
	"context"

	"sluice/daemon"
	"sluice/engine"
)

// Host is what the screen is run on: where it reads, and what carries out what a person wants.
type Host interface {
	// Repos gives the roots of the repos to be shown. note says what of the whole is not as it should be, "" where all is well.
	Repos(ctx context.Context) (roots []string, note string, err error)
	// Open gives whoever tells about a repo. served says that a process serves it, which tells of what comes, too.
	Open(ctx context.Context, root string) (v View, served bool, err error)
	// Served says whether a process serves the repo now. It is cheap, and disturbs nobody who starts.
	Served(ctx context.Context, root string) bool
	// Sign makes the signed text of an answer at a gate that wants one, which stands as g says. It has the terminal meanwhile:
	// a passphrase may be asked for, or a touch.
	Sign(ctx context.Context, root string, g daemon.GateStatus, ev engine.Answered) (proof string, err error)
	// Do has an event of a person taken in by the process that serves the repo.
	Do(ctx context.Context, root string, ev engine.Event) (daemon.Done, error)
	// Show gives what one needs to decide at a gate, or to know of a step.
	Show(ctx context.Context, root, run, what string) (Page, error)
	// Words gives the last line that the agent of a step, or the reviewer of a gate, said; "" where there is none.
	Words(ctx context.Context, root, run, what string) string
	// Tail gives the lines that an agent says, cleaned, from the last ones on, until ctx ends.
	Tail(ctx context.Context, root, run, what string, say func(line string)) error
}

// RunHost is what the screen of one run is run on: the process that serves the repo.
type RunHost interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	Run(ctx context.Context, run string) (daemon.RunStatus, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	// Do has an event of a person taken in. It refuses an answer that an attempt types.
	Do(ctx context.Context, ev engine.Event) (daemon.Done, error)
	// Show returns what one needs to decide at a gate of the run, or to know of a step.
	Show(ctx context.Context, run daemon.RunStatus, what string) (Page, error)
}

// View tells how one repo stands. *daemon.Client is one.
type View interface {
	Status(ctx context.Context, run string) (daemon.Status, error)
	Facts(ctx context.Context, run string, from int64, follow bool, fn func(daemon.Line) error) error
	Close()
}

// Page is a text to scroll in, about a step and the gate that judges it.
type Page struct {
	Lines []string // cleaned; colours may be in them
	Gate  string   // "" = none
	Round int      // of the gate, as the page shows it
	// Content is the digest of what that round is over.
	Content string
}
