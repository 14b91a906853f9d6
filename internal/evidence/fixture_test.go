package evidence

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/approval"
	"sluice/internal/git"
)

// site is a git repo with a commit of a run, and the key of its daemon.
type site struct {
	t      *testing.T
	dir    string
	repo   *git.Repo
	own    approval.OwnKey
	first  string // commit before the run's
	commit string // of the run
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.git("init", "-q", "-b", "main")
	s.write("a", "a\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	s.first = s.git("rev-parse", "HEAD")
	s.write("a", "work\n")
	s.git("commit", "-qam", "the work")
	s.commit = s.git("rev-parse", "HEAD")
	s.own = newKey(t)
	repo, err := git.Open(t.Context(), s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.repo = repo
	t.Cleanup(func() { repo.Close() })
	return s
}

// newKey is the key of another daemon.
func newKey(t *testing.T) approval.OwnKey {
	t.Helper()
	k, err := approval.Store{State: t.TempDir()}.OwnKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) tree(commit string) string { return s.git("rev-parse", commit+"^{tree}") }

// statement is one about the commit: its gates tests and approve have judged that very work.
func (s *site) statement(commit string) *Statement {
	d := Digest{commit, s.tree(commit)}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	round := func(by string) Round {
		return Round{N: 1, State: "passed", Outcome: "pass", Level: "auto", By: by, At: at, Reviewed: d.Commit, Judged: d}
	}
	approve := round("human")
	approve.Level, approve.Who, approve.Trust = "human", "ann", "sandbox"
	return &Statement{Type: StatementType, PredicateType: PredicateType,
		Subject: []Subject{{Name: "work-1", Digest: d, Annotations: Annotations{HowWork}}},
		Predicate: Predicate{
			Run: Run{ID: "work-1", Workflow: "work", Spec: strings.Repeat("a", 64), File: strings.Repeat("b", 64),
				Phase: "completed", Started: at, Ended: at, Held: true},
			Work:    d,
			Gates:   []Gate{{ID: "tests", Step: "A", Rounds: []Round{round("reviewer")}}, {ID: "approve", Step: "A", Rounds: []Round{approve}}},
			Journal: Journal{Repo: "r-1", Records: 40, Sum: strings.Repeat("c", 64)},
			Made:    Made{At: at, Tool: "sluice test"}}}
}

// sealed is the statement in an envelope, signed with the key.
func sealed(t *testing.T, st *Statement, key approval.OwnKey) string {
	t.Helper()
	line, err := Seal(st, func(message []byte) ([]byte, string, error) { return key.SignBare(message), key.Key, nil })
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// note puts a text on a commit, as anybody can who may push notes.
func (s *site) note(commit, text string) {
	s.t.Helper()
	s.write("note", text)
	s.git("notes", "--ref", NotesName, "add", "-f", "-F", "note", commit)
	if err := os.Remove(filepath.Join(s.dir, "note")); err != nil {
		s.t.Fatal(err)
	}
}

// policy is a policy that takes the daemon's key, and more lines.
func (s *site) policy(more string) *Policy {
	s.t.Helper()
	if !strings.Contains(more, "gates:") {
		more += "\ngates: [tests, approve]"
	}
	line, err := s.own.Line("daemon")
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := ParsePolicy("gates.yaml", fmt.Appendf(nil, "version: 1\nsigners: ['%s']\n%s\n", line, more))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// verify answers for what, by a policy.
func (s *site) verify(what string, p *Policy, files ...string) []Answer {
	s.t.Helper()
	commits, err := Commits(s.t.Context(), s.repo, what)
	if err != nil {
		s.t.Fatal(err)
	}
	v := Verifier{Repo: s.repo, Policy: p, Files: files}
	answers, err := v.Verify(s.t.Context(), commits)
	if err != nil {
		s.t.Fatal(err)
	}
	return answers
}

// wants checks the answer for the only commit.
func (s *site) wants(p *Policy, code int, words string) {
	s.t.Helper()
	got := s.verify("HEAD", p)
	if len(got) != 1 || got[0].Code != code || !strings.Contains(got[0].Why, words) || strings.Contains(got[0].Why, "\n") {
		s.t.Errorf("got %+v, want code %d and %q on one line", got, code, words)
	}
}

// resigned is an envelope whose payload was changed, with its old signature.
func resigned(t *testing.T, line, old, new string) string {
	t.Helper()
	var e Envelope
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(e.Payload), old, new, 1)
	if changed == string(e.Payload) {
		t.Fatalf("no %s in %s", old, e.Payload)
	}
	e.Payload = []byte(changed)
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}
