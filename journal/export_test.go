package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// evenFacts are the facts of an export in these tests: those of entries with an even number.
func evenFacts(r Record, n int) bool {
	var fact struct{ N int }
	if err := json.Unmarshal(r.Facts[0], &fact); err != nil {
		return false
	}
	return fact.N%2 == 0
}

func exported(t *testing.T, records int) (dir, name string) {
	t.Helper()
	dir = t.TempDir()
	l := mustOpen(t, dir, nil)
	name = filepath.Join(t.TempDir(), "gated-pipeline.log")
	x, err := OpenExport(name)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i := range records {
		recs, err := l.AppendRecords(entry(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Append(Lines(recs[0], evenFacts)...); err != nil {
			t.Fatal(err)
		}
	}
	return dir, name
}

func TestExportIsWhatTheJournalSays(t *testing.T) {
	conform.Rule(t, "2-files journal export", "line by line")
	conform.Rule(t, "004 §4 audit", "the record of a workflow")
	dir, name := exported(t, 20)
	rep, err := VerifyExport(name, dir, evenFacts, Options{})
	if err != nil || rep.Lines != 20 || rep.Behind != 0 {
		t.Fatal(rep, err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	var line struct {
		Seq, N  int
		At, Sum string
		Fact    struct{ Kind string }
	}
	if err := json.Unmarshal([]byte(first), &line); err != nil || line.Seq != 1 || line.N != 0 || line.Fact.Kind != "step_done" ||
		line.At != "2026-05-01T12:00:00.000000000Z" || len(line.Sum) != 64 {
		t.Fatal(first, err)
	}
}

// TestWriteLines: it writes what an export contains.
func TestWriteLines(t *testing.T) {
	dir, name := exported(t, 20)
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := WriteLines(&got, dir, evenFacts, Options{}); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v: %d bytes, want %d", err, got.Len(), len(want))
	}
}

// Cut at any byte, as by a crash, the export resumes and ends up byte for byte the same.
func TestExportGoesOnAfterACrash(t *testing.T) {
	conform.Rule(t, "2-files journal export", "cut anywhere, it ends as it would have")
	dir, name := exported(t, 8)
	l := mustOpen(t, dir, nil)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if n%thin != 0 {
			continue
		}
		if err := os.WriteFile(name, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		lines := int64(bytes.Count(whole[:n], []byte("\n")))
		rep, err := VerifyExport(name, dir, evenFacts, Options{})
		var fault *Fault
		if n < len(whole) && (!errors.As(err, &fault) || fault.Kind != FaultBehind || rep.Lines != lines || rep.Behind != 8-lines) {
			t.Fatalf("cut at %d: %+v %v", n, rep, err)
		}
		x, err := OpenExport(name)
		if err != nil {
			t.Fatal(err)
		}
		seq, at := x.Last()
		if want := (lines + 1) / 2 * 2; seq > 0 && (seq+1)/2*2 != want || lines > 0 && int64(at) != (lines-1)%2 {
			t.Fatalf("cut at %d: last is %d, %d with %d lines", n, seq, at, lines)
		}
		if err := l.Replay(seq, func(r Record) error { return x.Append(Lines(r, evenFacts)...) }); err != nil {
			t.Fatal(err)
		}
		x.Close()
		if got, _ := os.ReadFile(name); !bytes.Equal(got, whole) {
			t.Fatalf("cut at %d: the export is not as it was", n)
		}
	}
}

func TestExportFaults(t *testing.T) {
	conform.Rule(t, "2-files journal export", "what was changed in it is found")
	conform.Rule(t, "004 §4 audit", "append-only: a line changed or taken out is found")
	dir, name := exported(t, 20)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	forged := strings.Replace(lines[4], "step_done", "step_fail", 1)
	join := func(parts ...[]string) string {
		var all []string
		for _, p := range parts {
			all = append(all, p...)
		}
		return strings.Join(all, "")
	}
	cases := []struct {
		name string
		data string
		kind FaultKind
		line int64
		seq  int64
	}{
		{"changed", join(lines[:4], []string{forged}, lines[5:]), FaultDiffers, 5, 5},
		{"missing", join(lines[:4], lines[5:]), FaultMissing, 5, 5},
		{"the second fact missing", join(lines[:5], lines[6:]), FaultMissing, 6, 5},
		{"first missing", join(lines[1:]), FaultMissing, 1, 1},
		{"doubled", join(lines[:5], lines[4:]), FaultExtra, 6, 5},
		{"exchanged", join(lines[:4], lines[5:6], lines[4:5], lines[6:]), FaultMissing, 5, 5},
		{"more at the end", join(lines, []string{strings.Replace(lines[19], `"n":1`, `"n":2`, 1)}), FaultExtra, 21, 19},
		{"a word at the end", join(lines, []string{"hello\n"}), FaultExtra, 21, 0},
		{"a word in the middle", join(lines[:4], []string{"hello\n"}, lines[4:]), FaultDiffers, 5, 5},
		{"last missing", join(lines[:18]), FaultBehind, 19, 19},
		{"empty", "", FaultBehind, 1, 1},
		{"endless line", strings.Repeat("x", maxExportLineBytes+70_000), FaultDiffers, 1, 0},
	}
	for _, c := range cases {
		if err := os.WriteFile(name, []byte(c.data), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := VerifyExport(name, dir, evenFacts, Options{})
		var fault *Fault
		if !errors.As(err, &fault) || fault.Kind != c.kind || fault.Line != c.line || fault.Seq != c.seq {
			t.Errorf("%s: %v, want %s in line %d of record %d", c.name, err, c.kind, c.line, c.seq)
		}
	}
	for _, bad := range []string{"hello\n", lines[0] + "{}\n", lines[0] + " " + lines[1], strings.Repeat("x", 2*maxExportLineBytes+9), lines[0] + strings.Repeat("x", maxExportLineBytes*2) + "\n"} {
		if err := os.WriteFile(name, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenExport(name); !errors.As(err, new(*Fault)) {
			t.Errorf("%.40q: %v", bad, err)
		}
		if got, _ := os.ReadFile(name); string(got) != bad {
			t.Errorf("%.40q was changed", bad)
		}
	}
}

func TestExportWithLongLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.log")
	x, err := OpenExport(name)
	if err != nil {
		t.Fatal(err)
	}
	long := Line{Seq: 1, At: time.Unix(1, 0), Fact: json.RawMessage(`"` + strings.Repeat("x", MaxLineBytes-lineOverhead-2) + `"`), Sum: strings.Repeat("0", 64)}
	for seq := range int64(3) {
		long.Seq = seq + 1
		if err := x.Append(long); err != nil {
			t.Fatal(err)
		}
		x.Close()
		if x, err = OpenExport(name); err != nil {
			t.Fatal(err)
		}
		if got, _ := x.Last(); got != long.Seq {
			t.Fatal(got)
		}
	}
	x.Close()
}

// Agents and git can write to the repo: a link is not followed, and a file other than the opened
// one is not written to.
func TestExportThatSomebodyElseTouches(t *testing.T) {
	dir := t.TempDir()
	name, secret := filepath.Join(dir, "x.log"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, name); err != nil {
		t.Skip("kernel: no symbolic links")
	}
	if _, err := OpenExport(name); err == nil {
		t.Fatal("a link was followed")
	}
	if _, err := VerifyExport(name, dir, evenFacts, Options{}); err == nil {
		t.Fatal("a link was followed")
	}
	os.Remove(name)
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenExport(name); err == nil {
		t.Fatal("a folder was opened")
	}
	os.Remove(name)
	line := Line{Seq: 1, At: time.Unix(1, 0), Fact: json.RawMessage(`{}`), Sum: strings.Repeat("0", 64)}
	touch := map[string]func() error{
		"written to": func() error { return os.WriteFile(name, []byte("more than there was: "+fmt.Sprint(line)), 0o644) },
		"cut":        func() error { return os.Truncate(name, 3) },
		"removed":    func() error { return os.Remove(name) },
		"replaced":   func() error { return errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, nil, 0o644)) },
		"a link now": func() error { return errors.Join(os.Remove(name), os.Symlink(secret, name)) },
	}
	for how, change := range touch {
		os.Remove(name)
		x, err := OpenExport(name)
		if err != nil {
			t.Fatal(err)
		}
		next := line
		if err := x.Append(next); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		next.Seq = 2
		if err := x.Append(next); !errors.Is(err, ErrExportChanged) {
			t.Errorf("%s: %v", how, err)
		}
		x.Close()
	}
	if got, _ := os.ReadFile(secret); string(got) != "mine" {
		t.Fatalf("the link's file was written to: %q", got)
	}
}

// TestExportIsPlain: no terminal control character is raw in an export. One that an earlier release
// wrote raw still agrees with the journal and can be continued.
func TestExportIsPlain(t *testing.T) {
	const words = "\u009b2J\u202egate passed\u007f"
	fact, err := json.Marshal(map[string]string{"kind": "told", "text": words})
	if err != nil {
		t.Fatal(err)
	}
	line := Line{Seq: 1, At: time.Unix(1, 0), Fact: fact, Sum: strings.Repeat("a", hexLen)}
	for _, old := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "x.log")
		if old {
			raw := `{"seq":1,"n":0,"at":"` + line.At.UTC().Format(atLayout) + `","fact":` + string(fact) + `,"sum":"` + line.Sum + `"}` + "\n"
			if err := os.WriteFile(name, []byte(raw), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		x, err := OpenExport(name)
		if err != nil {
			t.Fatalf("old: %v: %v", old, err)
		}
		next := line
		next.Seq = 2
		if err := x.Append(line, next); err != nil {
			t.Fatal(err)
		}
		x.Close()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if len(lines) != 2 || strings.ContainsAny(lines[1], "\u009b\u202e\u007f") {
			t.Errorf("old: %v: %q", old, lines)
		}
		for _, l := range lines {
			got, err := parseExportLine([]byte(l))
			var back struct{ Text string }
			if err != nil || json.Unmarshal(got.Fact, &back) != nil || back.Text != words {
				t.Errorf("old: %v: %v %q", old, err, back.Text)
			}
		}
		c := &comparison{rep: &ExportReport{}, name: name, lines: bufio.NewReader(bytes.NewReader(data))}
		if err := errors.Join(c.compare(line), c.compare(next), c.end()); err != nil || c.rep.Lines != 2 {
			t.Errorf("old: %v: %v, %d lines agree", old, err, c.rep.Lines)
		}
	}
}
