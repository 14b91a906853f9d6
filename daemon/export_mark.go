package daemon

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/journal"
)

// mark is what an exporter leaves for the next: how far it got, and where the audit files ended.
type mark struct {
	Form int              `json:"form"` // of the audit files: auditForm
	Seq  int64            `json:"seq"`
	Sum  string           `json:"sum"`
	Ends map[string]place `json:"ends"`
}

type place struct {
	Seq int64 `json:"seq"`
	N   int   `json:"n"`
}

const (
	maxMark   = 1 << 20
	auditForm = 2 // 1 had every fact in the audit files
)

// errEnough ends a reading of the journal.
var errEnough = errors.New("enough was read")

// resume finds where to resume: after the mark, if it fits the journal and no audit file ends before
// it; otherwise at the first record. Existing lines are skipped.
func (x *exporter) resume() {
	data, _, err := atomicfile.OpenRegular(x.state, markFile, maxMark)
	var m mark
	if err != nil || json.Unmarshal(data, &m) != nil || m.Seq < 1 {
		return
	}
	same := false
	err = x.replay(m.Seq, func(rec journal.Record) error {
		same = rec.Seq == m.Seq && rec.Sum == m.Sum
		return errEnough
	})
	same = same && (err == nil || errors.Is(err, errEnough))
	if same {
		x.runs = m.Seq
	}
	if m.Form != auditForm {
		if x.putAside(m.Ends) { // once: after a kill, the next start finds the new files in these places
			m.Form = auditForm
			x.note(m)
		}
		return
	}
	if !same {
		return // the journal was repaired: write what it says now; verify reports extra lines
	}
	for name, end := range m.Ends {
		e, err := x.file(filepath.Join(x.root, name))
		if err != nil {
			return
		}
		if seq, n := e.Last(); seq < end.Seq || seq == end.Seq && n < end.N {
			return // moved away, or another branch's
		}
	}
	x.upTo, x.sum, x.ends = m.Seq, m.Sum, m.Ends
	if x.ends == nil {
		x.ends = map[string]place{}
	}
}

// putAside moves an older release's audit files, which have every fact, out of the way. They are
// written anew. It reports whether all of them are aside.
func (x *exporter) putAside(ends map[string]place) (all bool) {
	all = true
	for name := range ends {
		name = filepath.Join(x.root, name)
		aside := strings.TrimSuffix(name, ".log") + ".whole.log"
		if err := os.Rename(name, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			x.log.Warn().Err(err).Msg("an audit file of an older release could not be put aside: sluice audit verify names it")
			all = false
			continue
		}
		x.log.Info().Str("file",
			aside).Msg("an audit file of an older release, with every fact, is kept here; the new one has the decisions")
	}
	return all
}

const markFile = "exported"

// leave writes the mark. After a failed write, or with a gap, it keeps the previous mark, and the next start
// reads more.
func (x *exporter) leave() {
	if x.lost == 0 && !x.gap && len(x.broken) == 0 {
		x.note(mark{auditForm, x.upTo, x.sum, x.ends})
	}
}

func (x *exporter) note(m mark) {
	data, err := json.Marshal(m)
	if err != nil || len(data) > maxMark {
		return
	}
	if err := atomicfile.Write(filepath.Join(x.state, markFile), append(data, '\n'), 0o600); err != nil {
		x.log.Warn().Err(err).Msg("where the audit export ends could not be noted: the next start reads more of the journal")
	}
}
