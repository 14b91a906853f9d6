package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// What a launch returned after it was replaced is on a ref: its files, on those that it began with, and on its own
// commits. A repeat changes nothing, and what is wrong with a pack leaves nothing.
func TestLate(t *testing.T) {
	conform.Rule(t, "13-workers late tree", "a ref has the files, the files before, and the launch's commits; a bad pack leaves nothing")
	t.Parallel()
	a := newRepo(t)
	b := a.clone()
	head := a.run("rev-parse", "HEAD")
	start := a.commit(head, "found.txt")
	a.run("push", "-q", b.dir, start+":refs/heads/start")
	a.run("checkout", "-q", "--detach", head)
	tip := a.commit(head, "one.txt")
	a.write("found.txt", "work\n") // it was in the folder, in no commit
	work := a.commit(tip, "two.txt")
	a.run("checkout", "-q", "--orphan", "other")
	a.run("commit", "-qm", "other")
	other := a.run("rev-parse", "HEAD")
	pack := func(commit string) []byte {
		t.Helper()
		var out bytes.Buffer
		if err := Pack(t.Context(), a.git, &out, commit, head); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	late := func(k string, r Returned) Late {
		return Late{Run: "w-1", Step: "X.1", N: 2, K: k, Head: head, Start: start, Returned: r}
	}
	keep := func(l Late, from []byte) (string, error) { return l.Keep(t.Context(), b.git, bytes.NewReader(from)) }

	before := b.stored()
	good := pack(work)
	for what, c := range map[string]struct {
		r    Returned
		pack []byte
	}{
		"not a pack":            {Returned{work, tip}, []byte("PACK and no more")},
		"half of it":            {Returned{work, tip}, good[:len(good)/2]},
		"another commit's":      {Returned{work, tip}, pack(tip)},
		"not built on the head": {Returned{other, other}, pack(other)},
		"not built on the tip":  {Returned{work, start}, good},
	} {
		ref, err := keep(late("1", c.r), c.pack)
		var no *Refused
		if ref != "" || !errors.As(err, &no) {
			t.Errorf("%s: %q, %v", what, ref, err)
		}
		if now := b.stored(); now != before {
			t.Fatalf("%s has left:\n%s\nbefore:\n%s", what, now, before)
		}
	}

	ref, err := keep(late("1", Returned{work, tip}), good)
	if err != nil || ref != "refs/sluice/late/w-1/X.1.2.1" {
		t.Fatalf("%q, %v", ref, err)
	}
	if got := b.run("diff", "--name-only", ref+"^", ref); got != "one.txt\ntwo.txt" {
		t.Errorf("it changed %q", got)
	}
	if got := b.run("rev-parse", ref+"^2"); got != work {
		t.Errorf("its own commits are at %s, want %s", got, work)
	}
	at := b.run("rev-parse", ref)
	again, err := late("1", Returned{tip, tip}).Keep(t.Context(), b.git, reads{t})
	if err != nil || again != ref || b.run("rev-parse", ref) != at {
		t.Errorf("a repeat: %q, %v: %s, want %s", again, err, b.run("rev-parse", ref), at)
	}
	all, err := LateOf(t.Context(), b.git, "w-1")
	if want := "git diff " + ref + "^ " + ref; err != nil || len(all) != 1 || all[0].Look() != want || all[0].Step != "X.1" || all[0].N != 2 {
		t.Errorf("%+v, %v", all, err)
	}

	// where the commit that it began with is not, it is shown on the head
	elsewhere := late("2", Returned{work, tip})
	elsewhere.Start = strings.Repeat("1", len(head))
	if ref, err := keep(elsewhere, good); err != nil || b.run("rev-parse", ref+"^") != head {
		t.Errorf("%q, %v", ref, err)
	}
	// one that changed nothing has no ref
	same := late("3", Returned{start, start})
	if ref, err := keep(same, pack(start)); err != nil || ref != "" || strings.Contains(b.stored(), same.Ref()) {
		t.Errorf("%q, %v", ref, err)
	}
	// a person's, or an agent's
	for _, name := range []string{"w-1/x", "w-1/X;id.1.1", "w-1/X.1.$(id)", "w-1/X.one.1"} {
		b.run("update-ref", "refs/sluice/late/"+name, work)
	}
	if all, err := LateOf(t.Context(), b.git, "w-1"); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	// no more than maxLate of a run
	for i := range maxLate {
		b.run("update-ref", fmt.Sprintf("refs/sluice/late/w-2/X.1.%d", i+1), work)
	}
	many := late("21", Returned{work, tip})
	many.Run = "w-2"
	if _, err := many.Keep(t.Context(), b.git, reads{t}); err == nil || !strings.Contains(err.Error(), "kept already") {
		t.Errorf("%v", err)
	}
	if err := b.git.Drop(t.Context(), "w-1"); err != nil || strings.Contains(b.stored(), "late/w-1/") {
		t.Errorf("%v:\n%s", err, b.stored())
	}
}

// reads fails a test that reads it.
type reads struct{ t *testing.T }

func (r reads) Read([]byte) (int, error) {
	r.t.Error("it is fetched again")
	return 0, io.EOF
}
