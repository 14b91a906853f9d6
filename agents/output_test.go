package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sluice/tools/conform"
)

// numbered returns numbered lines.
func numbered(lines int) []byte {
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, "line %08d\n", i)
	}
	return b.Bytes()
}

func TestSinkKeepsHeadAndTail(t *testing.T) {
	conform.Rule(t, "7-agents output", "head and tail are kept")
	t.Parallel()
	const limit = MinMaxOutput
	head, segment := limit/2, int(segmentOf(limit))
	for _, size := range []int{0, 1, head - 1, head, head + 1, head + segment, head + segment + 1, head + 2*segment, head + 2*segment + 1, head + 3*segment, 40 * limit} {
		for _, chunk := range []int{1, 7, 1000, 1 << 20} {
			if size > 4*limit && chunk == 1 {
				continue
			}
			path := filepath.Join(t.TempDir(), "stdout")
			all := numbered(size/14 + 1)[:size]
			s := newSink("", path, limit)
			for rest := all; len(rest) > 0; {
				part := rest[:min(chunk, len(rest))]
				if n, err := s.Write(part); n != len(part) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
				rest = rest[len(part):]
			}
			s.close()
			checkKept(t, fmt.Sprintf("%d bytes in pieces of %d", size, chunk), path, all, limit)
		}
	}
}

func checkKept(t *testing.T, what, path string, all []byte, limit int) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil && !(len(all) == 0 && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	if len(got) > limit {
		t.Errorf("%s: %d bytes on disk, limit %d", what, len(got), limit)
	}
	head, segment := limit/2, int(segmentOf(int64(limit)))
	if len(all) <= head+segment {
		if !bytes.Equal(got, all) {
			t.Errorf("%s: changed", what)
		}
	} else if !bytes.HasPrefix(got, all[:head]) || !bytes.HasSuffix(got, all[len(all)-segment:]) {
		t.Errorf("%s: the head or the tail is not there", what)
	}
	before, after, marked := bytes.Cut(got, []byte("\n[sluice: "))
	var left int
	if marked {
		fmt.Sscanf(string(after), "%d bytes of output are left out here]", &left)
		_, after, _ = bytes.Cut(after, []byte("]\n"))
	}
	if len(before)+len(after)+left != len(all) {
		t.Errorf("%s: %d + %d kept and %d said to be left out", what, len(before), len(after), left)
	}
	if rest, err := filepath.Glob(path + ".*"); err != nil || len(rest) > 0 {
		t.Errorf("%s: left on disk: %v", what, rest)
	}
}

// The disk accepts nothing: the command is not blocked, and the loss is reported.
func TestSinkWithoutDisk(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file") // where a folder should be
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSink("", filepath.Join(file, "stdout"), MinMaxOutput)
	data := numbered(10_000)
	if n, err := s.Write(data); n != len(data) || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if s.unwritten == 0 || s.failure == nil {
		t.Error("it does not know that nothing was written")
	}
	s.close()
}

// A link or a pipe in the way is replaced, not followed.
func TestSinkFollowsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	os.WriteFile(victim, []byte("precious"), 0o600)
	for _, name := range []string{"stdout", "stdout.tail", "stdout.tail.old", "stderr", "stderr.tail"} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Skip("kernel: ", err)
		}
	}
	if got := Tail(dir, 100); len(got) > 0 {
		t.Errorf("tail read through a link: %q", got)
	}
	joinOutput(dir, MinMaxOutput)
	for _, name := range []string{"stdout", "stderr"} {
		s := newSink("", filepath.Join(dir, name), MinMaxOutput)
		s.Write(numbered(10_000))
		s.close()
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Error("it wrote through a link")
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := Tail(dir, 100); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("stdout", "one\ntwo")
	if got := string(Tail(dir, 100)); got != "stdout:\none\ntwo\n" {
		t.Errorf("of stdout: %q", got)
	}
	write("stderr", strings.Repeat("ä", 500))
	for n := range 600 {
		got := Tail(dir, n)
		if len(got) > n || !utf8.Valid(got) {
			t.Fatalf("%d bytes: %d, valid %v", n, len(got), utf8.Valid(got))
		}
		if n >= 100 && (!bytes.Contains(got, []byte("stdout:\none\ntwo\n")) || len(got) < n-2) {
			t.Fatalf("%d bytes: %d, and stdout's short text is cut: %q", n, len(got), got)
		}
	}
	// A live launch has its newest output in the tail.
	write("stderr", "")
	write("stdout.tail.old", "three\n")
	write("stdout.tail", "four\n")
	if got := string(Tail(dir, 27)); got != "stdout:\ne\ntwothree\nfour\n" && !strings.HasSuffix(got, "three\nfour\n") {
		t.Errorf("of a live launch: %q", got)
	}
}

func TestLastOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := LastOutput(dir); !got.IsZero() {
		t.Errorf("of nothing: %v", got)
	}
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, name := range []string{"stdout", "stderr", "stdout.tail", "stderr.tail"} {
		path := filepath.Join(dir, name)
		os.WriteFile(path, []byte("x"), 0o600)
		want := at.Add(time.Duration(i) * time.Minute)
		os.Chtimes(path, want, want)
		if got := LastOutput(dir); !got.Equal(want) {
			t.Errorf("with %s: %v, want %v", name, got, want)
		}
	}
}

func TestEnviron(t *testing.T) {
	conform.Rule(t, "4-trust environment", "what is allowed, and SLUICE_* never passed on")
	t.Parallel()
	parent := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/bin/sh", "LANG=C", "LC_ALL=C", "TERM=dumb", "TMPDIR=/t", "TZ=UTC",
		"XDG_RUNTIME_DIR=/r", "SSL_CERT_FILE=/c", "MY_KEY=1", "MY_=2", "OTHER=3", "NOT_MY_KEY=4", "PATHX=5", "LC=6", "EMPTY", "=7",
		"SLUICE_TOKEN=secret", "SLUICE_RUN=r", "AWS_SECRET=8", "ONE=a=b",
	}
	got := Environ(parent, []string{"MY_*", "ONE", "SLUICE_*", "["}, map[string]string{"SLUICE_TOKEN": "mine", "LANG": "de"})
	want := []string{"HOME=/h", "LANG=de", "LC_ALL=C", "LOGNAME=u", "MY_=2", "MY_KEY=1", "ONE=a=b", "PATH=/bin", "SHELL=/bin/sh", "SLUICE_TOKEN=mine",
		"SSL_CERT_FILE=/c", "TERM=dumb", "TMPDIR=/t", "TZ=UTC", "USER=u", "XDG_RUNTIME_DIR=/r"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	all := fmt.Sprint(Environ(parent, []string{"*"}, nil))
	if strings.Contains(all, "SLUICE_") || !strings.Contains(all, "AWS_SECRET") {
		t.Errorf("all: %s", all)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"v":1,"key":"k","pid":7,"start":"1","boot":"b","code":0}`))
	f.Add([]byte(`{"v":1,"key":"k","pid":1,"start":"1","boot":"b"}`))
	f.Add([]byte(`[`))
	f.Add([]byte("{\"v\":3,\"name\":\"x/pid\",\"pid\":7,\"start\":\"1\",\"boot\":\"b\"}\n\n{\"ended\":{\"code\":1}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for _, name := range []string{"pid", exitFile} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		id, err := readIdentity(filepath.Join(dir, "pid"))
		ours := id.Version == recordVersion && id.Name == recordName(filepath.Join(dir, "pid")) || id.Version == unnamedVersion
		if err == nil && (id.Pid <= 1 || id.Start == "" || id.Boot == "" || !ours) {
			t.Errorf("taken: %+v", id)
		}
		if rec, err := readExit(dir); err == nil && rec.of(identity{Key: "other"}) {
			t.Errorf("taken for another's: %+v", rec)
		}
	})
}

func TestSinkSaysWhatItLost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stdout")
	s := newSink("", path, MinMaxOutput)
	s.Write(numbered(200)) // the head is full, the rest is in the tail
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // nothing can be joined there
		t.Fatal(err)
	}
	if lost := s.close(); !strings.Contains(lost, "directory") {
		t.Errorf("said: %q", lost)
	}
	if _, err := os.Stat(path + TailSuffix); err != nil {
		t.Errorf("the newest output is gone: %v", err)
	}
}
