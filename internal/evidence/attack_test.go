package evidence

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// TestForgedNotes: what stands in a note counts by its signature alone.
func TestForgedNotes(t *testing.T) {
	conform.Rule(t, "12-evidence forged", `"Tried against forged notes, a note of another commit"`)
	s := newSite(t)
	good := sealed(t, s.statement(s.commit), s.own)
	eve := newKey(t)
	unfinished := s.statement(s.commit)
	unfinished.Predicate.Run.Phase = "failed"
	unfinished.Predicate.Journal.Records = 50
	older := s.statement(s.commit)
	older.Predicate.Journal.Records = 30
	lying := s.statement(s.commit)
	lying.Subject[0].Digest.Tree = s.tree(s.first)
	for _, c := range []struct {
		name, note string
		code       int
		words      string
	}{
		{"as it was", good, CodePass, "work-1: tests passed by reviewer, approve passed by ann (sandbox)"},
		{"none", "", CodeNone, "no evidence: it has no note"},
		{"by another key", sealed(t, s.statement(s.commit), eve), CodeForged, "which the policy does not list"},
		{"another's name on it", strings.Replace(sealed(t, s.statement(s.commit), eve), eve.Key, s.own.Key, 1), CodeForged, "the signature does not match"},
		{"the key's name replaced", strings.Replace(good, s.own.Key, eve.Key, 1), CodeForged, "which the policy does not list"},
		{"a changed payload", resigned(t, sealed(t, unfinished, s.own), `"phase":"failed"`, `"phase":"completed"`), CodeForged, "the signature does not match"},
		{"another type", strings.Replace(good, "in-toto+json", "in-toto+jsox", 1), CodeForged, "another kind"},
		{"no signature", good[:strings.Index(good, `"signatures"`)] + `"signatures":[]}`, CodeForged, "nobody signed"},
		{"cut off", good[:len(good)/2], CodeForged, "not an envelope"},
		{"no JSON", "Approved-by: ann\n", CodeForged, "not an envelope"},
		{"a doubled key", strings.Replace(good, `{"payloadType"`, `{"payload":"e30=","payloadType"`, 1), CodeForged, "not an envelope"},
		{"another tree", sealed(t, lying, s.own), CodeForged, "the statement names tree"},
		{"of an earlier commit", sealed(t, s.statement(s.first), s.own), CodeNone, "its note is about commit " + s.first[:12]},
		{"two, the newer one failed", good + sealed(t, unfinished, s.own), CodeUnsatisfied, "has not completed: it was failed"},
		{"two, the older one last", good + sealed(t, older, s.own), CodePass, "tests passed"},
		{"two, the second forged", good + strings.Replace(good, `"sig":"`, `"sig":"AAAA`, 1), CodeForged, "the statement in its note does not hold"},
		{"two, the second by an unknown key", good + sealed(t, unfinished, eve), CodePass, "tests passed"},
		{"two on one line", strings.TrimSpace(good) + good, CodeForged, "not an envelope"},
		{"too many", strings.Repeat(good, maxInNote+1), CodeForged, "more than 20 statements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			if c.note == "" {
				s.git("notes", "--ref", NotesName, "remove", "--ignore-missing", s.commit)
			} else {
				s.note(s.commit, c.note)
			}
			s.wants(s.policy(""), c.code, c.words)
		})
	}
}

// TestNoteEditedByOneByte: each byte of a note counts, but for the line end.
func TestNoteEditedByOneByte(t *testing.T) {
	conform.Rule(t, "12-evidence forged", `"Tried against forged notes, a note of another commit"`)
	s := newSite(t)
	good := strings.TrimSpace(sealed(t, s.statement(s.commit), s.own))
	p := s.policy("")
	commits, err := Commits(t.Context(), s.repo, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, b := range []byte{good[i] ^ 1, good[i] ^ 0x20} {
			note := good[:i] + string([]byte{b}) + good[i+1:]
			v := Verifier{Repo: s.repo, Policy: p, journal: map[string]string{}}
			n := noted{}
			n.envelopes, n.err = split([]byte(note))
			v.notes = map[string][]noted{s.commit: {n}}
			a, err := v.judge(t.Context(), commits[0])
			if err != nil || a.Code == CodePass {
				t.Fatalf("byte %d as %q: %+v %v", i, b, a, err)
			}
		}
	}
}

// TestNoteTooLong: a note of 100 MB is not read, and counts for nothing.
func TestNoteTooLong(t *testing.T) {
	conform.Rule(t, "12-evidence forged", `"Tried against forged notes, a note of another commit"`)
	s := newSite(t)
	s.note(s.commit, sealed(t, s.statement(s.commit), s.own)+strings.Repeat(strings.Repeat("x", 99)+"\n", 1_000_000))
	s.wants(s.policy(""), CodeForged, "its note cannot be read: the note has 1 MiB or more")
}

// TestRebased: the same tree in another commit is other evidence, unless the policy takes trees.
func TestRebased(t *testing.T) {
	conform.Rule(t, "12-evidence rebase", `"a rebase"`)
	s := newSite(t)
	s.note(s.commit, sealed(t, s.statement(s.commit), s.own))
	s.git("commit", "-q", "--amend", "-m", "the work, reworded")
	s.wants(s.policy(""), CodeNone, "no evidence: it has no note")
	s.wants(s.policy("match: tree"), CodePass, "tests passed")
	moved := s.git("rev-parse", "HEAD")
	s.note(moved, sealed(t, s.statement(s.commit), s.own))
	s.wants(s.policy(""), CodeNone, "its note is about commit "+s.commit[:12])
	s.git("commit", "-q", "--allow-empty", "-m", "nothing changed")
	s.wants(s.policy("match: tree"), CodePass, "tests passed")
	s.write("a", "more\n")
	s.git("commit", "-qam", "more")
	s.wants(s.policy("match: tree"), CodeNone, "no evidence")
}

// TestKeyRemoved: a statement by a key that the policy listed once does not count.
func TestKeyRemoved(t *testing.T) {
	conform.Rule(t, "12-evidence replaced key", `"a replaced key", and one that was removed`)
	s := newSite(t)
	s.note(s.commit, sealed(t, s.statement(s.commit), s.own))
	s.wants(s.policy(""), CodePass, "")
	was := s.own
	s.own = newKey(t)
	s.wants(s.policy(""), CodeForged, was.Key+", which the policy does not list")
	line, err := was.Line("daemon")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{strings.Replace(line, "sluice-evidence", "sluice-gate", 1),
		strings.Replace(line, "sluice-evidence", "sluice-audit", 1)} {
		p, err := ParsePolicy("p", []byte("version: 1\nsigners: ['"+other+"']\ngates: [tests]\n"))
		if err != nil {
			t.Fatal(err)
		}
		s.wants(p, CodeForged, "is not for sluice-evidence")
	}
}

// TestNotJudged: what a gate says of earlier work, or of nothing, is no evidence of the commit.
func TestNotJudged(t *testing.T) {
	conform.Rule(t, "12-evidence judged", `what is none that passed the work`)
	s := newSite(t)
	before := Digest{s.first, s.tree(s.first)}
	for _, c := range []struct {
		name   string
		change func(*Statement)
		more   string
		code   int
		words  string
	}{
		{"an earlier round judged earlier work", func(st *Statement) { st.Predicate.Gates[1].Rounds[0].Judged = before }, "", CodeUnsatisfied,
			"gate approve: round 1 passed commit " + s.first[:12] + ", and the work is " + s.commit[:12]},
		{"which a policy may take of a plan", func(st *Statement) { st.Predicate.Gates[1].Rounds[0].Judged = before },
			"gates: [tests, {gate: approve, judged: run}]", CodePass, ""},
		{"passed, then failed", func(st *Statement) {
			g := &st.Predicate.Gates[0]
			g.Rounds = append(g.Rounds, Round{N: 2, State: "failed", At: st.Predicate.Made.At, Judged: st.Predicate.Work})
		}, "", CodeUnsatisfied, "gate tests: its newest round, 2, is failed"},
		{"passed, then asked again", func(st *Statement) {
			g := &st.Predicate.Gates[0]
			g.Rounds = append(g.Rounds, Round{N: 2, State: "human", Judged: st.Predicate.Work})
		}, "", CodeUnsatisfied, "gate tests: its newest round, 2, is not decided"},
		{"passed, then undone", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].State = "superseded" }, "", CodeUnsatisfied, "is superseded"},
		{"let through", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].By = "exhausted" }, "", CodeUnsatisfied, "without a pass"},
		{"let through by a person's route", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].LetThrough = 2 }, "", CodeUnsatisfied, "without a pass"},
		{"skipped", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].By = "when" }, "", CodeUnsatisfied, "it was skipped"},
		{"skipped, which counts", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].By = "when" }, "gates: [{gate: tests, skipped: true}]", CodePass, ""},
		{"a gate that never was", func(st *Statement) { st.Predicate.Gates = st.Predicate.Gates[:1] }, "", CodeUnsatisfied, "gate approve: work-1 has no round of it"},
		{"a task's round, which did not pass", func(st *Statement) {
			st.Predicate.Gates = append(st.Predicate.Gates, Gate{ID: "tests", Run: "work-1.B.1", Rounds: []Round{{N: 1, State: "failed", At: st.Predicate.Made.At}}})
		}, "", CodePass, ""},
		{"which fails a rule for the whole run", func(st *Statement) {
			st.Predicate.Gates = append(st.Predicate.Gates, Gate{ID: "tests", Run: "work-1.B.1", Rounds: []Round{{N: 1, State: "failed", At: st.Predicate.Made.At}}})
		}, "gates: [{gate: tests, judged: run}]", CodeUnsatisfied, "gate tests: its newest round, 1, is failed"},
		{"a commit that is gone", func(st *Statement) { st.Predicate.Gates[0].Rounds[0].Judged.Tree = "" }, "", CodeUnsatisfied, "judged no commit that is known"},
		{"a running run", func(st *Statement) { st.Predicate.Run.Phase = "running" }, "", CodeUnsatisfied, "has not completed: it was running"},
		{"a running run, which counts", func(st *Statement) { st.Predicate.Run.Phase = "running" }, "unfinished: true", CodePass, ""},
		{"carried", func(st *Statement) { st.Subject[0].Annotations.How = HowCarried }, "", CodeUnsatisfied, "(accept: carried)"},
		{"carried, without the work", func(st *Statement) { st.Subject[0].Annotations.How = HowCarried }, "accept: [work, carried]", CodeUnsatisfied, "none of the commits after it has that work"},
		{"merged", func(st *Statement) { st.Subject[0].Annotations.How = HowMerged }, "", CodeUnsatisfied, "(accept: merged)"},
		{"a way that nobody knows", func(st *Statement) { st.Subject[0].Annotations.How = "blessed" }, "accept: [work, merged, carried]", CodeUnsatisfied, "not known: blessed"},
		{"called the work, and is another", func(st *Statement) {
			st.Predicate.Work = before
			for i := range st.Predicate.Gates {
				st.Predicate.Gates[i].Rounds[0].Judged = before
			}
		}, "", CodeForged, "calls tree "},
		{"another workflow", func(st *Statement) {}, "workflows: [release]", CodeUnsatisfied, "a run of workflow work"},
		{"another spec", func(st *Statement) {}, "specs: [" + strings.Repeat("d", 64) + "]", CodeUnsatisfied, "ran a spec (bbbbbbbbbbbb)"},
		{"the spec by its file", func(st *Statement) {}, "specs: [" + strings.Repeat("b", 64) + "]", CodePass, ""},
		{"not enough trust", func(st *Statement) { st.Predicate.Gates[1].Rounds[0].Trust = "file" }, "gates: [{gate: approve, trust: sandbox}]",
			CodeUnsatisfied, "its answer has trust file, and the policy requires sandbox"},
		{"a reviewer that was held", func(st *Statement) {}, "gates: [{gate: tests, trust: sandbox}]", CodePass, ""},
		{"a reviewer that was not", func(st *Statement) { st.Predicate.Run.Held = false }, "gates: [{gate: tests, trust: sandbox}]", CodeUnsatisfied, "trust file"},
		{"another person", func(st *Statement) {}, "gates: [{gate: approve, by: [bob]}]", CodeUnsatisfied, "ann (sandbox) passed it, and the policy requires bob"},
		{"a person whom nobody knows", func(st *Statement) { st.Predicate.Gates[1].Rounds[0].Who = "" }, "gates: [{gate: approve, by: [ann]}]", CodeUnsatisfied, "requires ann"},
		{"trust that nobody knows", func(st *Statement) { st.Predicate.Gates[1].Rounds[0].Trust = "divine" }, "gates: [{gate: approve, trust: file}]", CodeUnsatisfied, "trust divine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			st := s.statement(s.commit)
			c.change(st)
			s.note(s.commit, sealed(t, st, s.own))
			s.wants(s.policy(c.more), c.code, c.words)
		})
	}
}

// TestCutJournal: of two statements of a repo, one must be wrong if a record has two sums.
func TestCutJournal(t *testing.T) {
	conform.Rule(t, "12-evidence rewritten", `two sums of one record`)
	s := newSite(t)
	s.note(s.commit, sealed(t, s.statement(s.commit), s.own))
	s.write("a", "more\n")
	s.git("commit", "-qam", "more")
	st := s.statement(s.git("rev-parse", "HEAD"))
	st.Predicate.Run.ID, st.Predicate.Journal.Sum = "work-2", strings.Repeat("d", 64)
	s.note("HEAD", sealed(t, st, s.own))
	got := s.verify(s.first+"..HEAD", s.policy(""))
	if len(got) != 2 || got[0].Code != CodePass || got[1].Code != CodeForged || !strings.Contains(got[1].Why, "another record 40 of the journal of r-1") {
		t.Errorf("%+v", got)
	}
}

// TestRange: each commit is answered for, from the policy's start on and if it changes what counts.
func TestRange(t *testing.T) {
	conform.Rule(t, "12-evidence verify", `an answer for each commit of a range`)
	s := newSite(t)
	s.note(s.commit, sealed(t, s.statement(s.commit), s.own))
	if err := os.MkdirAll(filepath.Join(s.dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("docs/x.md", "x\n")
	s.git("add", "-A")
	s.git("commit", "-qm", "docs")
	s.git("mv", "a", "docs/a")
	s.git("commit", "-qm", "hidden in the docs")
	codes := func(what, more string) (out []int) {
		for _, a := range s.verify(what, s.policy(more)) {
			out = append(out, a.Code)
		}
		return out
	}
	all := s.first + "..HEAD"
	for _, c := range []struct {
		what, more string
		want       []int
	}{
		{all, "", []int{0, 10, 10}},
		{all, "exempt: ['docs/**']", []int{0, 0, 10}},
		{all, "paths: ['docs/**']", []int{0, 10, 10}},
		{all, "paths: [b]", []int{0, 0, 0}},
		{all, "start: " + s.git("rev-parse", "HEAD~1"), []int{0, 0, 10}},
		{all, "start: " + s.git("rev-parse", "HEAD"), []int{0, 0, 0}},
		{"HEAD", "start: " + s.first, []int{10}},
		{"HEAD~1", "start: " + s.git("rev-parse", "HEAD"), []int{0}},
		{"HEAD..HEAD", "", nil},
	} {
		got := codes(c.what, c.more)
		if len(got) != len(c.want) {
			t.Fatalf("%s %s: %v", c.what, c.more, got)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s %q: %v, want %v", c.what, c.more, got, c.want)
				break
			}
		}
	}
}

// TestMergesAreAsked: a merge that takes one side's files back changes files, whichever parent is first.
func TestMergesAreAsked(t *testing.T) {
	conform.Rule(t, "12-evidence merges", `differs from any parent`)
	s := newSite(t)
	s.git("checkout", "-q", "-b", "side", s.first)
	s.write("b", "b\n")
	s.git("add", "b")
	s.git("commit", "-qm", "side")
	s.git("merge", "-q", "-s", "ours", "-m", "drops the work", "main")
	s.wants(s.policy("exempt: [b]"), CodeNone, "no evidence")
}

// TestCarriedNeedsTheWork: a commit that came along passes only if a later one has its run's work, also one that the policy
// does not ask about or that is of another run too; a run's refused attempt cannot be merged by itself.
func TestCarriedNeedsTheWork(t *testing.T) {
	conform.Rule(t, "12-evidence carried", "what came along with a run's work counts only before that work")
	s := newSite(t)
	base := s.git("rev-parse", "HEAD")
	commit := func(file string) (sha, tree string) {
		s.write(file, file+"\n")
		s.git("add", file)
		s.git("commit", "-qm", file)
		return s.git("rev-parse", "HEAD"), s.git("rev-parse", "HEAD^{tree}")
	}
	refused, refusedTree := commit("refused")
	work, workTree := commit("docs")
	st := s.statement(work)
	along := func(st Statement) Statement {
		st.Subject = append([]Subject{}, st.Subject...)
		sub := st.Subject[0]
		sub.Digest.Commit, sub.Digest.Tree, sub.Annotations.How = refused, refusedTree, HowCarried
		st.Subject = append(st.Subject, sub)
		return st
	}
	both := along(*st)
	other := both
	other.Predicate.Run.ID = "another-1"
	s.note(work, sealed(t, &both, s.own))
	s.note(refused, sealed(t, &both, s.own)+sealed(t, &other, s.own))
	if both.Predicate.Work.Tree != workTree {
		t.Fatal("the work is another commit's")
	}
	for _, c := range []struct {
		what, policy string
		codes        []int
	}{
		{base + ".." + work, "accept: [work, carried]", []int{CodePass, CodePass}},
		{base + ".." + work, "accept: [work, carried]\nexempt: [docs]", []int{CodePass, CodePass}},
		{base + ".." + refused, "accept: [work, carried]", []int{CodeUnsatisfied}},
		{refused, "accept: [work, carried]", []int{CodeUnsatisfied}},
		{base + ".." + work, "accept: [carried]", []int{CodeUnsatisfied, CodeUnsatisfied}},
	} {
		var codes []int
		for _, a := range s.verify(c.what, s.policy(c.policy)) {
			codes = append(codes, a.Code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%s by %q: %v, want %v", c.what, c.policy, codes, c.codes)
		}
	}
}
