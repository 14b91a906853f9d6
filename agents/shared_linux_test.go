package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLaunchesOfAShimShareAFile: their pid files are names of one file, as long as that is small and
// its folder there; each has its own record and end.
func TestLaunchesOfAShimShareAFile(t *testing.T) {
	t.Parallel()
	base, r := testSpec(t, ""), warm(t, 1)
	state := filepath.Dir(base.PidFile)
	n := 0
	launch := func(pidFile string) Spec {
		n++
		s := nth(base, n, fmt.Sprintf("exit %d", n%100))
		s.PidFile = filepath.Join(state, pidFile)
		if e := wait(t, ensure(t, r, s)); e.Code != n%100 {
			t.Fatalf("%s: %+v", pidFile, e)
		}
		return s
	}
	ends := func(code int, s Spec) {
		t.Helper()
		if id, err := readIdentity(s.PidFile); err != nil || id.Key != s.Key || id.Ended == nil || id.Ended.Code != code {
			t.Errorf("%s: %+v, %v", s.PidFile, id, err)
		}
		if e := wait(t, ensure(t, newRunner(), s)); e.Code != code {
			t.Errorf("%s again: %+v", s.PidFile, e)
		}
	}
	one, two, three := launch("launches/w-1/A.pid"), launch("launches/w-1/B.pid"), launch("launches/w-2/A.pid")
	for _, s := range []Spec{two, three} {
		if !same(t, one.PidFile, s.PidFile) {
			t.Errorf("%s is another file than %s", s.PidFile, one.PidFile)
		}
	}
	for i, s := range []Spec{one, two, three} {
		ends(i+1, s)
	}
	if other := launch("others/w-1/A.pid"); same(t, one.PidFile, other.PidFile) {
		t.Error("a launch of another folder has a name that one here may have")
	} else {
		ends(4, other)
	}
	for last := launch("others/w-1/0.pid"); ; {
		s := launch(fmt.Sprintf("others/w-1/%d.pid", n))
		ends(n%100, s)
		if info, err := os.Stat(s.PidFile); err != nil || info.Size() > maxShared+(4<<10) {
			t.Fatalf("%v bytes, %v", info.Size(), err)
		}
		if !same(t, last.PidFile, s.PidFile) {
			break
		}
	}
	if err := os.RemoveAll(filepath.Join(state, "others")); err != nil {
		t.Fatal(err)
	}
	after := launch("others/w-1/A.pid")
	ends(n%100, after)
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// TestOnlyOneRecordHasTheName: a shim whose launch was taken by another has a record of it in its
// file, and no pid file leads there.
func TestOnlyOneRecordHasTheName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, "launches", "w-1", name) }
	id := func(pid int) identity {
		return identity{Version: recordVersion, Pid: pid, Start: "1", Boot: "1", Launched: time.Now()}
	}
	first, second := &place{}, &place{}
	for _, c := range []struct {
		by   *place
		name string
		pid  int
		want error
	}{
		{first, "A.pid", 11, nil}, {second, "B.pid", 12, nil}, {second, "A.pid", 13, fs.ErrExist}, {second, "C.pid", 14, nil},
		{first, "B.pid", 15, fs.ErrExist},
	} {
		if err := c.by.claim(at(c.name), id(c.pid)); !errors.Is(err, c.want) {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	if err := first.file.ended(Exit{Code: 1}); err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"A.pid": 11, "B.pid": 12, "C.pid": 14} {
		got, err := readIdentity(at(name))
		if err != nil || got.Pid != pid || got.Ended != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if err := os.Remove(at("A.pid")); err != nil {
		t.Fatal(err)
	}
	if err := second.claim(at("A.pid"), id(16)); err != nil {
		t.Fatal(err)
	}
	if got, err := readIdentity(at("A.pid")); err != nil || got.Pid != 16 {
		t.Errorf("taken again: %+v, %v", got, err)
	}
}

// TestRecordsInAFile: what a pid file says of its launch, by the release before too, and when it is torn.
func TestRecordsInAFile(t *testing.T) {
	t.Parallel()
	const (
		was   = `{"v":2,"key":"k","pid":7,"start":"1","boot":"b","mark":"m","dir":"/d","launched":"2026-11-24T10:00:00Z"}` + "\n"
		mine  = `{"v":3,"name":"w-1/A.pid","key":"k","pid":7,"start":"1","boot":"b"}` + "\n"
		other = `{"v":3,"name":"w-2/A.pid","key":"o","pid":7,"start":"1","boot":"b"}` + "\n"
		next  = `{"v":4,"name":"w-1/A.pid","key":"k","pid":7,"start":"1","boot":"b"}` + "\n"
		end3  = "\n" + `{"ended":{"code":3,"started":"2026-11-24T10:00:00Z","ended":"2026-11-24T10:00:01Z"}}` + "\n"
		end4  = "\n" + `{"ended":{"code":4,"started":"2026-11-24T10:00:00Z","ended":"2026-11-24T10:00:01Z"}}` + "\n"
	)
	const live, torn = -1, -2
	for what, c := range map[string]struct {
		data string
		code int
	}{
		"the release before":       {was, live},
		"the release before, over": {was + end3, 3},
		"alone":                    {mine + end3, 3},
		"the first":                {mine + end3 + "\n" + other + end4, 3},
		"the last":                 {other + end4 + "\n" + mine + end3, 3},
		"live":                     {other + end4 + "\n" + mine, live},
		"an end that is not whole": {mine + end3[:len(end3)-1], live},
		"an end, torn and again":   {mine + end4[:30] + end3, 3},
		"nobody's before its own":  {mine + "\n" + other + end4 + "\n" + mine + end3, 3},
		"another's only":           {other + end4, torn},
		"a later release":          {next + end3, torn},
		"empty":                    {"", torn},
		"zeros":                    {string(make([]byte, 600)), torn},
		"half":                     {mine[:40], torn},
	} {
		id, err := identityIn("/s/launches/w-1/A.pid", []byte(c.data))
		switch {
		case c.code == torn:
			if !errors.Is(err, ErrTorn) {
				t.Errorf("%s: %+v, %v", what, id, err)
			}
		case err != nil || id.Key != "k" || (id.Ended == nil) != (c.code == live) || id.Ended != nil && id.Ended.Code != c.code:
			t.Errorf("%s: %+v, %v", what, id, err)
		}
	}
}

// TestASilentSuccessLeavesNoFiles, also none of an earlier launch; all else is recorded there.
func TestASilentSuccessLeavesNoFiles(t *testing.T) {
	t.Parallel()
	base, r := testSpec(t, ""), warm(t, 1)
	left := func(s Spec) (names []string) {
		entries, err := os.ReadDir(s.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	end := func(s Spec, names ...string) {
		t.Helper()
		wait(t, ensure(t, r, s))
		eventually(t, fmt.Sprintf("%s has %v", s.Dir, names), func() bool { return fmt.Sprint(left(s)) == fmt.Sprint(names) })
	}
	end(nth(base, 1, "exit 0"))
	end(nth(base, 2, "exit 3"), exitFile)
	end(nth(base, 3, "echo x >&2"), exitFile, stderrFile)
	again := nth(base, 4, "exit 0")
	again.Dir = base.Dir + "3"
	end(again, exitFile)
	pipe := nth(base, 6, "")
	pipe.Argv[2] = "mkfifo " + pipe.Dir
	wait(t, ensure(t, r, pipe))
	end(nth(base, 7, "exit 0")) // the shim is not held up
	empty := nth(base, 5, "exit 0")
	if err := os.Mkdir(empty.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	end(empty)
}
