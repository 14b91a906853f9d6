package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/atomicfile"
	"sluice/journal"
)

// RunEvents is the export of one run, in its folder.
const RunEvents = "events.jsonl"

// Limits of the exports.
const (
	exportsOpen = 32                    // open files
	exportLines = 1000                  // lines collected for one write
	exportQueue = 64                    // queued records; more are read from the journal
	exportPause = 20 * time.Millisecond // how long they are collected
	exportAgain = 2 * time.Second       // retry delay after a failed write
)

// exporter keeps the readable copies of the journal: .workflow/audit/<workflow>.log, and
// runs/<run>/events.jsonl for each run. It works behind the loop: a slow or failing export delays
// nothing and resumes where it stopped. Its goroutine lives only while something waits.
type exporter struct {
	root, state string
	log         zerolog.Logger
	flows       flows
	open        map[string]*journal.Export
	order       []string // of open, oldest first
	base        string   // a parent folder of all exports that is never created
	upTo        int64    // all records up to this one are exported
	sum         string   // of that record
	runs        int64    // up to this record, runs/ is not written again: it may have been cleaned
	ends        map[string]place
	lines       map[string][]journal.Line // waiting for flush, by file below the root
	names       []string                  // of lines, in order of arrival
	waiting     int                       // lines
	begun       map[string]bool           // of names: exports of runs that start in the waiting lines
	over        []string                  // of names: exports of runs that are forgotten in the waiting lines
	broken      map[string]bool           // files that failed; not written before the next retry
	lost        int64                     // the first record with a line that could not be written; 0: none
	gap         bool                      // the journal could not be read after upTo
	told        func(string)              // reports what is wrong with the exports; "": nothing any more
	replay      func(from int64, fn func(journal.Record) error) error

	mu      sync.Mutex
	in      []*journal.Record // given and not taken
	behind  bool              // in was full: the journal has more
	most    int               // of in
	working bool              // there is a goroutine
	last    bool              // no more are given
	ending  chan struct{}     // closed with last
	done    chan struct{}     // closed when all are exported after that
}

// ExportName returns the audit export of a workflow, below the repo's root.
func ExportName(workflow string) string { return filepath.Join(".workflow", "audit", workflow+".log") }

func newExporter(root, state string, log zerolog.Logger, told func(string)) *exporter {
	base := filepath.Join(root, ".workflow")
	if _, err := os.Lstat(base); err != nil {
		base = root
	}
	return &exporter{root: root, base: base, state: state, log: log, told: told, flows: flows{},
		open: map[string]*journal.Export{},
		ends: map[string]place{}, lines: map[string][]journal.Line{}, begun: map[string]bool{}, broken: map[string]bool{},
		most: exportQueue, ending: make(chan struct{}), done: make(chan struct{})}
}

// begin has earlier records, read with replay, exported too.
func (x *exporter) begin(replay func(from int64, fn func(journal.Record) error) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replay, x.working = replay, true
	go func() {
		x.resume()
		_ = x.fill() // it is logged
		x.work()
	}()
}

// end waits a while for the exports to finish; the next start adds what is missing.
func (x *exporter) end() {
	x.mu.Lock()
	x.last = true
	close(x.ending)
	x.wake()
	x.mu.Unlock()
	select {
	case <-x.done:
	case <-time.After(landMost):
		x.log.Warn().Str("repo",
			x.root).Msg("the audit export does not finish; the next start adds what is missing")
	}
}

// give passes a record on without waiting, so the loop does not depend on the export's disk.
func (x *exporter) give(rec journal.Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.in) < x.most && !x.behind {
		x.in = append(x.in, &rec)
	} else {
		x.behind = true
	}
	x.wake()
}

// wake starts the goroutine unless there is one. The caller holds mu.
func (x *exporter) wake() {
	if !x.working && x.replay != nil {
		x.working = true
		go x.work()
	}
}

// work exports what waits until nothing does.
func (x *exporter) work() {
	for {
		pause := exportPause // what a record starts gets the processor first, and each file is written once
		if x.lost > 0 {
			pause = exportAgain
		}
		select {
		case <-x.ending: // no more are given
		case <-time.After(pause):
		}
		x.mu.Lock()
		in, behind, last := x.in, x.behind, x.last
		x.in, x.behind = nil, false
		if x.working = last || x.lost > 0 || behind || len(in) > 0; !x.working {
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		if x.lost > 0 && !last { // the journal may be closed
			x.retry()
		}
		x.export(in, behind)
		if last {
			x.close()
			return
		}
	}
}

// export exports records, and then what the journal has after them. Those after a gap that could not be filled are
// left to the next start.
func (x *exporter) export(in []*journal.Record, behind bool) {
	for _, rec := range in {
		if rec.Seq == x.upTo+1 {
			x.take(*rec)
		}
	}
	x.flush()
	if behind {
		_ = x.fill() // it is logged
	}
}

// fill exports what the journal has after the last exported record.
func (x *exporter) fill() error {
	err := x.replay(x.upTo+1, func(rec journal.Record) error {
		if x.take(rec); x.waiting >= exportLines {
			x.flush()
		}
		return nil
	})
	x.flush()
	if x.gap = err != nil; x.gap {
		x.log.Warn().Err(err).Msg("the audit export could not catch up; the next start adds what is missing")
	}
	return err
}

func (x *exporter) close() {
	for _, e := range x.open {
		_ = e.Close() // nothing is buffered
	}
	x.leave()
	close(x.done)
}

// retry writes from the journal what could not be written; a full disk may have space again.
func (x *exporter) retry() {
	from := x.lost
	x.upTo, x.lost = min(x.upTo, from-1), 0
	clear(x.broken)
	if err := x.fill(); err != nil && x.lost == 0 {
		x.lost = from
	}
	if x.lost == 0 {
		x.log.Info().Msg("the audit exports can be written again")
		x.told("")
	}
}

func (x *exporter) letGo(name string) {
	if e := x.open[name]; e != nil {
		_ = e.Close() // nothing is buffered
		delete(x.open, name)
		x.order = slices.DeleteFunc(x.order, func(n string) bool { return n == name })
	}
}

func (x *exporter) add(name string, line journal.Line) {
	if x.lines[name] == nil {
		x.names = append(x.names, name)
	}
	x.lines[name] = append(x.lines[name], line)
	x.waiting++
}

// flush appends the waiting lines to their exports, except those already there.
func (x *exporter) flush() {
	for _, name := range x.names {
		ofRun := filepath.Base(name) == RunEvents
		if ofRun && x.cleaned(name) {
			x.letGo(filepath.Join(x.root, name))
			continue
		}
		if lines := x.lines[name]; x.append(filepath.Join(x.root, name), lines) && !ofRun {
			last := lines[len(lines)-1]
			x.ends[name] = place{last.Seq, last.N}
		}
	}
	for _, name := range x.over {
		x.letGo(filepath.Join(x.root, name))
	}
	x.names, x.over, x.waiting = x.names[:0], x.over[:0], 0
	clear(x.lines)
	clear(x.begun)
}

// cleaned reports whether a run's folder was cleaned away since the run started or was reopened. It
// is not created again.
func (x *exporter) cleaned(name string) bool {
	if x.begun[name] {
		return false
	}
	_, err := os.Lstat(filepath.Join(x.root, filepath.Dir(name)))
	return errors.Is(err, fs.ErrNotExist)
}

// append appends lines to an export and reports whether it could.
func (x *exporter) append(name string, lines []journal.Line) bool {
	e, err := x.file(name)
	if err == nil {
		err = e.Append(lines...)
	}
	if err == nil {
		return true
	}
	x.letGo(name)
	if x.lost == 0 || lines[0].Seq < x.lost {
		x.lost = lines[0].Seq
	}
	if !x.broken[name] {
		x.broken[name] = true
		x.told("export: " + err.Error())
	}
	return false
}

func (x *exporter) file(name string) (*journal.Export, error) {
	if e := x.open[name]; e != nil {
		return e, nil
	}
	if x.broken[name] {
		return nil, errors.New("broken before")
	}
	perm := os.FileMode(0o755)
	if filepath.Base(name) == RunEvents {
		perm = 0o700 // a run's folder; the audit files are meant to be committed
	}
	if err := atomicfile.MkdirBelow(x.base, filepath.Dir(name), perm); err != nil {
		return nil, err
	}
	e, err := journal.OpenExport(name)
	if err != nil {
		return nil, err
	}
	if len(x.open) >= exportsOpen {
		x.letGo(x.order[0])
	}
	x.open[name] = e
	x.order = append(x.order, name)
	return e, nil
}
