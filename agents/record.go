package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

const (
	recordVersion  = 3        // of a pid file
	unnamedVersion = 2        // of a pid file with one record, before 3
	exitVersion    = 2        // of an exit.json
	maxRecordBytes = 64 << 10 // of a pid file or an exit.json
	exitFile       = "exit.json"
	stopSuffix     = ".stop" // beside a pid file: the launch must end, or never start
)

// ErrTorn is returned for a damaged pid file, as a power cut leaves it. Nothing is known of its
// launch.
var ErrTorn = fault.New("check that nothing of this launch is running, then remove the file", "it is not a record")

// errMalformed is returned for something that is not a record; reading it again would not help.
var errMalformed = errors.New("not a record")

// identity is a pid file's record: which process the shim of a launch is.
type identity struct {
	file    string // the pid file; "" if it was removed
	Version int    `json:"v"`
	Name    string `json:"name"` // see recordName: a shim's launches share a file
	Key     string `json:"key"`
	Pid     int    `json:"pid"`
	// Start is the process's start time in the system's format; only for comparison (Linux: clock
	// ticks since boot).
	Start string `json:"start"`
	Boot  string `json:"boot"`
	// Mark is in the shim's environment, the third part of its identity.
	Mark string `json:"mark"`
	// Token is the digest of the launch's token, or "".
	Token string `json:"token,omitempty"`
	// Cgroup is the absolute path of the command's cgroup, or "".
	Cgroup    string        `json:"cgroup,omitempty"`
	Dir       string        `json:"dir"`
	KillAfter time.Duration `json:"kill_after_ns"`
	MaxOutput int64         `json:"max_output"`
	Launched  time.Time     `json:"launched"`
	// Ended is the result: see endLine.
	Ended *Exit `json:"-"`
}

// endLine follows a record when nothing of the launch is left. From then on its shim may have
// another launch and must not be signalled for this one. A partial line, seen while it is written,
// does not count.
type endLine struct {
	Ended *Exit `json:"ended"`
}

// exitRecord is an exit.json. The identity in it ties it to one launch, so a file from elsewhere is
// not taken for the outcome.
type exitRecord struct {
	Version int    `json:"v"`
	Key     string `json:"key"`
	Pid     int    `json:"pid"`
	Start   string `json:"start"`
	Boot    string `json:"boot"`
	Token   string `json:"token,omitempty"`
	Exit
}

func (id identity) record(e Exit) exitRecord {
	return exitRecord{exitVersion, id.Key, id.Pid, id.Start, id.Boot, id.Token, e}
}

func (r exitRecord) of(id identity) bool {
	return r.Version == exitVersion && r.Key == id.Key && r.Token == id.Token &&
		r.Pid == id.Pid && r.Start == id.Start && r.Boot == id.Boot
}

func tokenDigest(token string) string {
	if token == "" {
		return ""
	}
	return digest(token)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// readIdentity reads a pid file; fs.ErrNotExist means never launched.
func readIdentity(pidFile string) (identity, error) {
	data, err := readRecord(pidFile)
	if err != nil {
		return identity{}, err
	}
	return identityIn(pidFile, data)
}

// recordName names the record of a pid file: the last two elements of its path.
func recordName(pidFile string) string {
	dir, base := filepath.Split(pidFile)
	return filepath.Base(dir) + "/" + base
}

// identityIn is readIdentity of a pid file's content.
func identityIn(pidFile string, data []byte) (id identity, err error) {
	name, mine := recordName(pidFile), false
	for line := range bytes.Lines(data) {
		var end endLine
		if bytes.HasPrefix(line, []byte(`{"ended"`)) {
			if mine && line[len(line)-1] == '\n' && json.Unmarshal(line, &end) == nil {
				id.Ended = end.Ended
			}
			continue
		}
		var rec identity
		if json.Unmarshal(line, &rec) == nil {
			mine = rec.Version == unnamedVersion || rec.Version == recordVersion && rec.Name == name
			if mine {
				id = rec
			}
		}
	}
	if id.Pid <= 1 || id.Start == "" || id.Boot == "" {
		return id, fmt.Errorf("pid file %s: no record of this launch that this version can read: %w", pidFile, ErrTorn)
	}
	id.file = pidFile
	return id, nil
}

// readExit reads the exit.json in dir. fs.ErrNotExist means there is none, errMalformed that it is
// not a record.
func readExit(dir string) (exitRecord, error) {
	var r exitRecord
	data, err := readRecord(filepath.Join(dir, exitFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w: %v", filepath.Join(dir, exitFile), errMalformed, err)
	}
	return r, nil
}

// readRecord reads a regular file of a record's size. It neither follows a link nor waits for
// a pipe's writer, because an agent may reach the folder.
func readRecord(name string) ([]byte, error) {
	data, err := atomicfile.Read(name, maxRecordBytes)
	if errors.Is(err, atomicfile.ErrNotRegular) || errors.Is(err, atomicfile.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w: want a regular file of at most %d bytes: %w", name, errMalformed, maxRecordBytes, err)
	}
	return data, err
}

// writeExit writes exit.json by rename, replacing whatever exists: only the launch's owner calls
// it. It does not sync.
func writeExit(dir string, rec exitRecord) error {
	tmp, err := writeTemp(dir, rec)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, exitFile)); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

// askStop leaves the mark that ends a launch or prevents its start. It comes before the look for a
// live launch, and a shim looks for the mark after taking the pid file, so one of the two sees the
// other.
func askStop(pidFile string) error {
	if err := os.MkdirAll(filepath.Dir(pidFile), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(pidFile+stopSuffix, os.O_WRONLY|os.O_CREATE|openSafely, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// makeDir creates the folder of a launch's files; with below, only if that still exists.
func makeDir(below, dir string) error {
	if below == "" {
		return os.MkdirAll(dir, 0o700)
	}
	return atomicfile.MkdirBelow(below, dir, 0o700)
}

// stopAsked reports whether the launch of a pid file must end.
func stopAsked(pidFile string) bool {
	_, err := os.Lstat(pidFile + stopSuffix)
	return err == nil
}

// writeFirstExit is writeExit for callers that may race: the first record of the launch stays, and
// is returned.
func writeFirstExit(dir string, id identity, e Exit) (Exit, error) {
	tmp, err := writeTemp(dir, id.record(e))
	if err != nil {
		return e, err
	}
	defer os.Remove(tmp)
	err = os.Link(tmp, filepath.Join(dir, exitFile))
	if errors.Is(err, fs.ErrExist) {
		if rec, rerr := readExit(dir); rerr == nil && rec.of(id) {
			return rec.Exit, nil
		}
	}
	if err != nil {
		err = os.Rename(tmp, filepath.Join(dir, exitFile))
	}
	return e, err
}

// writeTemp writes a record to a new file (0600) in dir and returns its name.
func writeTemp(dir string, rec exitRecord) (string, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "."+exitFile+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
