package prompt

import (
	"fmt"
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
	failedShape  = `{"status": "failed", "summary": "why not"}`
	blockedShape = `{"status": "blocked", "question": "what you need to know", "options": ["this", "that"]}`
)

// SignalHelp tells an agent in Markdown how its step says that it is done, failed or blocked.
func SignalHelp(in SignalInput) string {
	p := &page{}
	switch in.Signal.Type {
	case engine.SignalFile:
		p.sentinel(in)
		return p.String()
	case engine.SignalCommit:
		p.text("Commit all of your work. The last commit's message must have this marker, on a line of its own:\n")
		p.text("    %s\n", text.RevealLine(in.Signal.Value, maxInline))
		p.text("Make that commit only when everything above holds: it says that you are done. Then end.")
	case engine.SignalPull:
		branch := "your branch"
		if name := orElse(in.Signal.Value, in.Branch); name != "" {
			branch = "the branch " + text.Code(name)
		}
		p.text("Commit all of your work, push it on %s, and open a pull request from that branch. Open it only when everything above holds: it says that you are done. Then end.", branch)
	default:
		p.text("When everything above holds, end. The process that ends with exit code 0 says that you are done, every other exit code that you failed. " +
			"Let your last message say in a few sentences what you did, or why you could not.")
	}
	if in.Path != "" {
		p.text("\nIf you cannot do the task, say so instead: write one of these to the file %s (the environment variable `SLUICE_SIGNAL` names it too), then end.\n", text.Code(in.Path))
		p.shapes(failedShape, blockedShape)
	}
	return p.String()
}

func (p *page) sentinel(in SignalInput) {
	path := orElse(in.Path, in.Signal.Value)
	if in.Offered {
		p.text("When everything above holds, write this file, as the last thing you do: %s.\n", text.Code(path))
		p.shapes(`{"status": "done", "summary": "in one or two sentences what you did"}`)
		p.text("\nIf you cannot do the task, or something stops you that only a person can decide, write one of these instead:\n")
		p.shapes(failedShape, blockedShape)
		p.text("\n`sluice signal` writes it for you. Without this file nobody knows that the step is done.")
		return
	}
	p.text("When everything above holds, write this file, as the last thing you do: %s. The environment variable `SLUICE_SIGNAL` has its path too.\n", text.Code(path))
	p.shapes(`{"status": "done", "summary": "in one or two sentences what you did"}`)
	p.text("\nIn a shell: `printf '%%s' '{\"status\": \"done\", \"summary\": \"…\"}' > \"$SLUICE_SIGNAL\"`. Then end.")
	p.text("\nIf you cannot do the task, or something stops you that only a person can decide, write one of these instead:\n")
	p.shapes(failedShape, blockedShape)
	p.text("\nWithout this file your work counts as failed, even if you end well.")
}

func (p *page) shapes(shapes ...string) { p.text("```json\n%s\n```", strings.Join(shapes, "\n")) }

// verdictShape is the exact form of a verdict, with the outcomes and the rubric of this gate.
func verdictShape(allowed, rubric []string, computed bool) string {
	var lines []string
	word := "pass or fail"
	if len(allowed) > 0 {
		word = strings.Join(quoted(allowed), " or ")
	}
	if !computed || len(allowed) > 0 {
		lines = append(lines, fmt.Sprintf("  \"verdict\": \"%s\"", strings.ReplaceAll(word, `"`, "")))
	}
	if len(rubric) == 0 {
		lines = append(lines, `  "score": 0 to 100`)
	} else {
		var scores []string
		for _, r := range firstNames(rubric) {
			scores = append(scores, fmt.Sprintf("%q: 0 to 100", text.RevealLine(r, maxName)))
		}
		lines = append(lines, "  \"scores\": {"+strings.Join(scores, ", ")+"}")
	}
	lines = append(lines, `  "summary": "for people, in one or two sentences"`,
		`  "feedback": "what is wrong and what would be right, so that it can be mended from these words alone"`,
		`  "findings": [{"severity": "high", "file": "path", "line": 1, "message": "what is wrong here"}]`)
	return "```text\n{\n" + strings.Join(lines, ",\n") + "\n}\n```\n"
}

func firstNames(names []string) []string { return names[:min(len(names), maxNames)] }

func quoted(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range firstNames(names) {
		out = append(out, fmt.Sprintf("%q", text.RevealLine(n, maxName)))
	}
	return out
}
