package daemon

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"sluice/internal/atomicfile"
	"sluice/journal"
)

// exportsOpen bounds how many export files are held open.
const exportsOpen = 32

// exporter keeps the readable copies of the journal: .workflow/audit/<workflow>.log, and runs/<run>/events.jsonl for
// each run. It works behind the loop: an export that lags or fails delays nothing, and is taken up where it was.
type exporter struct {
	root, state string
	log         zerolog.Logger
	flows       map[string]string // run -> workflow
	open        map[string]*journal.Export
	order       []string // of open, oldest first
	upTo        int64    // all records up to this are in their exports
	broken      map[string]bool
	in          chan journal.Record
	done        chan struct{}
}

// ExportName is the audit export of a workflow, below the repo's root.
func ExportName(workflow string) string { return filepath.Join(".workflow", "audit", workflow+".log") }

func newExporter(root, state string, log zerolog.Logger) *exporter {
	x := &exporter{root: root, state: state, log: log, flows: map[string]string{}, open: map[string]*journal.Export{},
		broken: map[string]bool{}, in: make(chan journal.Record, 4096), done: make(chan struct{})}
	if b, err := os.ReadFile(x.mark()); err == nil {
		x.upTo, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // unreadable: from the beginning; lines there are skipped
	}
	return x
}

func (x *exporter) mark() string { return filepath.Join(x.state, "exported") }

// run takes records until in is closed. Those after upTo that were journaled before are given by catchUp.
func (x *exporter) run(catchUp func(from int64, fn func(journal.Record) error) error) {
	defer close(x.done)
	if err := catchUp(x.upTo+1, func(rec journal.Record) error { x.take(rec); return nil }); err != nil {
		x.log.Warn().Err(err).Msg("the audit export could not catch up")
	}
	for rec := range x.in {
		if rec.Seq > x.upTo {
			x.take(rec)
		}
	}
	for _, e := range x.open {
		_ = e.Close() // nothing is buffered
	}
	if len(x.broken) == 0 {
		_ = atomicfile.Write(x.mark(), []byte(strconv.FormatInt(x.upTo, 10)), 0o600) // else: the next start reads more
	}
}

// head is what of a fact says where it goes.
type head struct {
	Kind     string `json:"kind"`
	Run      string `json:"run"`
	Workflow string `json:"workflow"`
	Notice   struct {
		Run string `json:"run"`
	} `json:"notice"`
	Move struct {
		Run string `json:"run"`
	} `json:"move"`
}

func headOf(fact json.RawMessage) head {
	var h head
	_ = json.Unmarshal(fact, &h) // our own writing; a fact without a run goes nowhere
	if h.Run == "" {
		h.Run = h.Notice.Run
	}
	if h.Run == "" {
		h.Run = h.Move.Run
	}
	return h
}

func (x *exporter) take(rec journal.Record) {
	for n, fact := range rec.Facts {
		h := headOf(fact)
		if h.Run == "" {
			continue
		}
		if h.Kind == "run_started" {
			x.flows[h.Run] = h.Workflow
		}
		flow, ok := x.flows[h.Run]
		if !ok {
			flow = workflowOf(h.Run)
		}
		line := journal.Line{Seq: rec.Seq, N: n, At: rec.At, Fact: fact, Sum: rec.Sum}
		x.add(filepath.Join(x.root, ExportName(flow)), line)
		x.add(filepath.Join(x.root, ".workflow", "runs", h.Run, "events.jsonl"), line)
	}
	x.upTo = rec.Seq
}

// workflowOf is the workflow of a run's id: what stands before its number.
func workflowOf(run string) string {
	if i := strings.LastIndexByte(run, '-'); i > 0 {
		return run[:i]
	}
	return run
}

// add appends a line to an export, unless it is there already.
func (x *exporter) add(name string, line journal.Line) {
	e, err := x.export(name)
	if err == nil {
		if seq, n := e.Last(); line.Seq < seq || line.Seq == seq && line.N <= n {
			return
		}
		err = e.Append(line)
	}
	if err == nil {
		return
	}
	if e != nil {
		_ = e.Close()
		delete(x.open, name)
	}
	if !x.broken[name] {
		x.broken[name] = true
		x.log.Warn().Err(err).Str("file", name).Msg("the audit export cannot be written; `sluice audit verify` tells what is missing, the next start adds it")
	}
}

func (x *exporter) export(name string) (*journal.Export, error) {
	if e := x.open[name]; e != nil {
		return e, nil
	}
	if x.broken[name] {
		return nil, errors.New("broken before")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	e, err := journal.OpenExport(name)
	if err != nil {
		return nil, err
	}
	if len(x.open) >= exportsOpen {
		oldest := x.order[0]
		x.order = x.order[1:]
		if old := x.open[oldest]; old != nil {
			_ = old.Close()
			delete(x.open, oldest)
		}
	}
	x.open[name] = e
	x.order = append(x.order, name)
	return e, nil
}

// KeepWorkflow chooses the facts that the audit export of a workflow holds, for journal.VerifyExport: the records have
// to come in order, from the first.
func KeepWorkflow(workflow string) journal.Keep {
	flows := map[string]string{}
	return func(rec journal.Record, n int) bool {
		h := headOf(rec.Facts[n])
		if h.Run == "" {
			return false
		}
		if h.Kind == "run_started" {
			flows[h.Run] = h.Workflow
		}
		flow, ok := flows[h.Run]
		if !ok {
			flow = workflowOf(h.Run)
		}
		return flow == workflow
	}
}
