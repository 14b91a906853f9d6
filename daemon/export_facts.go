package daemon

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"sluice/journal"
)

// head is the part of a fact that says where it goes.
type head struct {
	Kind     string    `json:"kind"`
	Run      string    `json:"run"`
	Workflow string    `json:"workflow"`
	Child    *struct{} `json:"child"`
	isChild  bool
	Notice   struct {
		Run string `json:"run"`
	} `json:"notice"`
	Move struct {
		Run string `json:"run"`
	} `json:"move"`
}

func headOf(fact json.RawMessage) head {
	var h head
	_ = json.Unmarshal(fact, &h) // our own output; a fact without a run goes nowhere
	h.Run = cmp.Or(h.Run, h.Notice.Run, h.Move.Run)
	return h
}

// topOf returns the top run of a child run's id, <run>.<task>.<try>; of any other id, the id
// itself. A top run's exports include its children.
func topOf(run string, known map[string]string) string {
	if i := strings.LastIndexAny(run, ".-"); i < 0 || run[i] == '-' {
		return run
	}
	first := ""
	for i := range len(run) {
		if run[i] != '.' {
			continue
		}
		if _, ok := known[run[:i]]; ok {
			return run[:i]
		}
		if k := strings.LastIndexAny(run[:i], ".-"); first == "" && k > 0 && run[k] == '-' &&
			strings.Trim(run[k+1:i], "0123456789") == "" {
			first = run[:i]
		}
	}
	return cmp.Or(first, run)
}

// workflowOf returns the workflow in a run's id: what precedes its number.
func workflowOf(run string) string {
	if i := strings.LastIndexByte(run, '-'); i > 0 {
		return run[:i]
	}
	return run
}

// flows are the workflows of the runs that have started.
type flows map[string]string

// of returns the head of a fact, with the top run in place of a child run, and the workflow; "" if the fact is of no
// run. The facts must come in order.
func (f flows) of(fact json.RawMessage) (h head, workflow string) {
	h = headOf(fact)
	if h.Run == "" {
		return h, ""
	}
	top := topOf(h.Run, f)
	h.isChild, h.Run = top != h.Run, top
	if h.Kind == "run_started" && h.Child == nil {
		f[h.Run] = h.Workflow
	}
	return h, cmp.Or(f[h.Run], workflowOf(h.Run))
}

// audited reports whether facts of a kind are in an audit export: a line for each launch, word,
// verdict, decision and end.
func audited(kind string) bool {
	switch kind {
	case "run_started", "step_launched", "review_started",
		"step_signalled", "step_skipped",
		"judged", "inconclusive",
		"round_passed", "round_failed", "round_routed", "round_voided", "signature_used",
		"step_held", "step_handed_back", "run_paused", "run_resumed", "run_reopened",
		"task_ended", "run_ended":
		return true
	}
	return false
}

// take adds the facts of a record to the exports in which they are.
func (x *exporter) take(rec journal.Record) {
	for n, fact := range rec.Facts {
		h, flow := x.flows.of(fact)
		if h.Run == "" {
			continue
		}
		line := journal.Line{Seq: rec.Seq, N: n, At: rec.At, Fact: fact, Sum: rec.Sum}
		if audited(h.Kind) {
			x.add(ExportName(flow), line)
		}
		if rec.Seq > x.runs {
			name := filepath.Join(".workflow", "runs", h.Run, RunEvents)
			x.add(name, line)
			switch {
			case h.isChild:
			case h.Kind == "run_started", h.Kind == "run_reopened":
				x.begun[name] = true
			case h.Kind == "run_forgotten": // its last fact
				x.over = append(x.over, name)
			}
		}
		if h.Kind == "run_forgotten" && !h.isChild {
			delete(x.flows, h.Run)
		}
	}
	x.upTo, x.sum = rec.Seq, rec.Sum
}

// KeepAudit selects the facts of a workflow's audit export, for journal.VerifyExport. Records must
// come in order, from the first.
func KeepAudit(workflow string) journal.Keep {
	of := KeepWorkflow(workflow)
	return func(rec journal.Record, n int) bool { return of(rec, n) && audited(headOf(rec.Facts[n]).Kind) }
}

// KeepWorkflow selects all facts of a workflow's runs. Records must come in order, from the first.
func KeepWorkflow(workflow string) journal.Keep {
	seen := flows{}
	return func(rec journal.Record, n int) bool {
		h, flow := seen.of(rec.Facts[n])
		return h.Run != "" && flow == workflow
	}
}
