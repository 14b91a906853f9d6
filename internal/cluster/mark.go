package cluster

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/strictjson"
	"sluice/journal"
)

// markFile, in a repo's state folder, says that its journal belongs to a cluster. A daemon without
// the cluster does not serve such a repo: what it recorded would not be in the stream.
const (
	markFile  = "cluster"
	markBytes = 1 << 10
)

type mark struct {
	Journal string `json:"journal"` // its id
}

// Marked returns the id of the journal whose stream the repo's journal belongs to; "" = none.
func Marked(state string) (id string, err error) {
	data, _, err := atomicfile.OpenRegular(state, markFile, markBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var k mark
	if err = strictjson.Object(data, markBytes); err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil || !journal.IsID(k.Journal) {
		return "", fault.Failed("remove it and run `sluice cluster join` again", "%s names no journal",
			filepath.Join(state, markFile))
	}
	return k.Journal, nil
}

func writeMark(state, id string) error {
	data, err := json.Marshal(mark{id})
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(state, markFile), append(data, '\n'), 0o600)
}

// Leave ends a repo's part in a cluster, with a record that says so. Its journal goes on alone, on
// this machine only. The caller has locked the state folder.
func Leave(state string, o Options) error {
	log, _, err := journal.Open(state, journal.Options{Logf: o.Logf})
	if err != nil {
		return err
	}
	past, err := historyOf(log)
	leads := past.newest.Epoch > 0 && !past.left
	if err == nil && leads {
		_, _, err = log.Append(journal.Left{Epoch: past.newest.Epoch, By: o.By}.Entry(o.Now()))
	}
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	err = os.Remove(filepath.Join(state, markFile)) // last: a crash before it leaves all to a second try
	if errors.Is(err, fs.ErrNotExist) && !leads {
		return fault.Failed("nothing has to be done", "this repo belongs to no cluster")
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
