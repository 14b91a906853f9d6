package prompt

import (
	"strings"

	"sluice/engine"
	"sluice/internal/text"
)

// SignalInput is what an agent has to know to say that it is done.
type SignalInput struct {
	Signal engine.Signal
	Path   string // the file SLUICE_SIGNAL names; "" = Signal.Value, and for other types: there is none
	Branch string // pr_creation: the branch that must be the head; "" = the current one
	// Offered: a person or an orchestrating agent does the step; there is no process of ours with an environment.
	Offered bool
}

const (
	doneShape    = `{"status": "done", "summary": "in one or two sentences what you did"}`
	failedShape  = `{"status": "failed", "summary": "why not"}`
	blockedShape = `{"status": "blocked", "question": "what you need to know", "options": ["this", "that"]}`
)

// signal says how the step is reported done, failed or blocked.
func (p *page) signal(in SignalInput) {
	switch in.Signal.Type {
	case engine.SignalFile:
		p.sentinel(in)
		return
	case engine.SignalCommit:
		p.text("Commit all of your work. The last commit's message must have this marker, on a line of its own:\n")
		p.text("    %s\n", text.RevealLine(in.Signal.Value, maxInline))
		p.text("Make that commit only when everything above holds: it says that you are done. Then end.")
	case engine.SignalPull:
		branch := "your branch"
		if name := orElse(in.Signal.Value, in.Branch); name != "" {
			branch = "the branch " + text.Code(name)
		}
		p.text("Commit all of your work, push it on %s, and open a pull request from that branch. "+
			"Open it only when everything above holds: it says that you are done. Then end.", branch)
	default:
		p.text("When everything above holds, end. " +
			"Exit code 0 says that you are done, every other exit code that you failed. " +
			"Let your last message say in a few sentences what you did, or why you could not.")
	}
	if in.Path != "" {
		p.text("\nIf you cannot do the task, say so instead: write one of these to the file %s "+
			"(the environment variable `SLUICE_SIGNAL` names it too), then end.\n", text.Code(in.Path))
		p.shapes(failedShape, blockedShape)
	}
}

func (p *page) sentinel(in SignalInput) {
	env := " The environment variable `SLUICE_SIGNAL` has its path too."
	if in.Offered {
		env = ""
	}
	p.text("When everything above holds, write this file, as the last thing you do: %s.%s\n",
		text.Code(orElse(in.Path, in.Signal.Value)), env)
	p.shapes(doneShape)
	if !in.Offered {
		p.text("\nIn a shell: `printf '%%s' '{\"status\": \"done\", \"summary\": \"…\"}' > \"$SLUICE_SIGNAL\"`. " +
			"Then end.")
	}
	p.text("\nIf you cannot do the task, or something stops you that only a person can decide, " +
		"write one of these instead:\n")
	p.shapes(failedShape, blockedShape)
	if in.Offered {
		p.text("\n`sluice signal` writes it for you. Without this file nobody knows that the step is done.")
	} else {
		p.text("\nWithout this file your work counts as failed, whatever your exit code.")
	}
}

func (p *page) shapes(shapes ...string) { p.text("```json\n%s\n```", strings.Join(shapes, "\n")) }
