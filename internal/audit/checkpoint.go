package audit

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/text"
	"sluice/journal"
)

// byNote is what --checkpoint takes for the git notes.
const byNote = "note"

// maxCheckpoints bounds a file of them.
const maxCheckpoints = 1 << 20

// checkpoints reads those that the journal is compared with. One whose signature does not hold is
// reported as broken: who could rewrite the journal could have written it too.
func (r Repo) checkpoints(against []string, signers string) (points []journal.Checkpoint, told []Checked, err error) {
	if len(against) == 0 {
		return nil, nil, nil
	}
	list, err := approval.Store{State: r.State}.Load()
	if signers != "" {
		list = approval.List{}
		var data []byte
		if data, err = readAll(signers); err == nil {
			list.Signers, err = approval.ParseList(data)
		}
	}
	if err != nil {
		return nil, nil, fault.Failed("name a file in the format of OpenSSH's allowed_signers: --approvers FILE",
			"the list of keys cannot be read: %v", err)
	}
	sums := map[int64]string{}
	for _, from := range against {
		texts, err := r.checkpointTexts(from)
		if err != nil {
			return nil, nil, err
		}
		for _, signed := range texts {
			c, one := r.held(list, from, signed)
			if other, twice := sums[c.Seq]; one.OK && twice && other != c.Sum {
				one.OK, one.Why = false,
					"another checkpoint of that record has another sum: the journal was rewritten between the two"
			}
			if one.OK && sums[c.Seq] == "" {
				sums[c.Seq] = c.Sum
				points = append(points, journal.Checkpoint{Seq: c.Seq, Sum: c.Sum})
			}
			told = append(told, one)
		}
	}
	return points, told, nil
}

// Points returns what the git notes with checkpoints say of the journal, as far as their signatures
// hold.
func (r Repo) Points() ([]journal.Checkpoint, error) {
	notes, err := r.Notes()
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	points, _, err := r.checkpoints([]string{byNote}, "")
	return points, err
}

// held is a checkpoint whose signature holds, or why it does not.
func (r Repo) held(list approval.List, from string, signed []byte) (approval.Checkpoint, Checked) {
	what := "checkpoint " + from
	text, by, err := list.Verify(signed, approval.AuditNamespace)
	if err != nil {
		return approval.Checkpoint{}, Checked{What: what, Why: err.Error()}
	}
	c, err := approval.ParseCheckpoint(text)
	if err == nil && c.Repo != r.ID {
		err = fmt.Errorf("it is of another repo (%s; this is %s)", c.Repo, r.ID)
	}
	return c, Checked{What: what, OK: err == nil, Why: errText(err), Point: c.Seq,
		Signed: "signed by " + by.Names[0] + " on " + c.At.Format(time.DateTime) + "Z"}
}

// checkpointTexts are the signed texts of a file, or of all notes.
func (r Repo) checkpointTexts(from string) ([][]byte, error) {
	var all [][]byte
	if from == byNote {
		notes, err := r.Notes()
		if err != nil {
			return nil, err
		}
		for _, commit := range slices.Sorted(maps.Keys(notes)) {
			all = append(all, approval.SplitAll(notes[commit])...)
		}
	} else {
		data, err := readAll(from)
		if err != nil {
			return nil, err
		}
		all = approval.SplitAll(data)
	}
	if len(all) == 0 { // a lost checkpoint must not look like a good one
		return nil, fault.Failed("`sluice audit checkpoint` creates one; fetch the remote ones: git fetch origin "+
			"refs/notes/sluice:refs/notes/sluice", "no checkpoint in %s", text.Line(from))
	}
	return all, nil
}

// readAll reads a file of checkpoints or of keys.
func readAll(file string) ([]byte, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return atomicfile.Read(abs, maxCheckpoints)
}
