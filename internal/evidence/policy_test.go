package evidence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/tools/conform"
)

// TestPolicyFaults: each fault of a policy is reported with its line.
func TestPolicyFaults(t *testing.T) {
	conform.Rule(t, "12-evidence policy", `faults with file and line`)
	line, err := newKey(t).Line("daemon")
	if err != nil {
		t.Fatal(err)
	}
	good := "version: 1\nsigners:\n  - '" + line + "'\ngates: [tests]\n"
	if p, err := ParsePolicy("p.yaml", []byte(good)); err != nil || p.Match != MatchCommit || len(p.Accept) != 1 || p.Accept[0] != HowWork {
		t.Fatalf("%+v %v", p, err)
	}
	for _, c := range []struct{ text, says string }{
		{"", "p.yaml:1:1: the policy is empty"},
		{"version: 2\n" + good[11:], "p.yaml:1:1: version: this sluice reads version 1"},
		{good + "gate: [x]\n", "p.yaml:5:1: gate: no such key: did you mean gates?"},
		{good + "gates: [y]\n", "p.yaml:5:1: gates is there twice"},
		{"version: 1\ngates: [tests]\n", "p.yaml:1:1: signers is missing"},
		{"version: 1\nsigners: ['" + line + "']\n", "p.yaml:1:1: gates is missing"},
		{"version: 1\nsigners: ['" + line + "']\ngates: []\n", "p.yaml:3:8: want a list of 1 to 1000 gates"},
		{"version: 1\nsigners: ['" + line + "']\ngates: [{trust: signed}]\n", "p.yaml:3:9: gate is missing"},
		{"version: 1\nsigners: ['" + line + "']\ngates: [a, a]\n", "p.yaml:3:12: gate a is there twice"},
		{"version: 1\nsigners: ['" + line + "']\ngates: [{gate: a, trust: high}]\n", "p.yaml:3:26: want one of file, sandbox, forge, signed"},
		{"version: 1\nsigners: ['" + line + "']\ngates: [{gate: a, trust: signed}]\n", "p.yaml:3:1: gate a wants a signed answer, and approvers has no key"},
		{"version: 1\nsigners: ['" + line + "']\napprovers: ['" + line + "']\ngates:\n  - {gate: a, trust: signed, by: [bob]}\n", "p.yaml:5:1: gate a: approvers has no key of bob"},
		{"version: 1\nsigners: ['" + line + "', '" + line + "']\ngates: [a]\n", "is there twice"},
		{"version: 1\nsigners: [daemon ssh-ed25519 AAAA]\ngates: [a]\n", "p.yaml:2:11: want one line of allowed_signers"},
		{"version: 1\nsigners: ['* " + strings.SplitN(line, " ", 3)[2] + "']\ngates: [a]\n", "p.yaml:2:11: want one line of allowed_signers"},
		{good + "start: main\n", "p.yaml:5:8: want the whole name of a commit"},
		{good + "match: any\n", "p.yaml:5:8: want one of commit, tree"},
		{good + "accept: [all]\n", "p.yaml:5:10: want one of work, merged, carried"},
		{good + "accept: []\n", "p.yaml:5:9: want a list of work"},
		{good + "unfinished: 'true'\n", "p.yaml:5:13: want true or false"},
		{good + "specs: [abc]\n", "p.yaml:5:9: want a SHA-256 in hex"},
		{good + "paths: src\n", "p.yaml:5:8: want a list of 1 to 1000 texts"},
		{good + "paths: [~]\n", "p.yaml:5:9: want a text"},
		{good + "paths: &a [x]\nexempt: *a\n", "no anchors, aliases or tags"},
		{good + "paths: [&a x]\n", "no anchors, aliases or tags"},
		{good + "paths: [!!str x]\n", "no anchors, aliases or tags"},
		{good + "paths: &a [*a]\n", "p.yaml:5:1: want at most 10000 values, and no anchors"},
		{good + "paths: [[x]]\n", "p.yaml:5:9: want a text"},
		{good + "paths: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "p.yaml:5:9: want a text"},
		{good + "paths: " + strings.Repeat("[", 20_000) + "\n", "p.yaml:5:1: not YAML: exceeded max depth"},
		{good + "---\nversion: 1\n", "p.yaml:5:1: more than one document"},
		{good + "---\na: [\n", "p.yaml:6:1: not YAML"},
		{"#\n", "p.yaml:1:1: the policy is empty"},
		{good + "paths: [x\n", "not YAML"},
		{good + "#" + strings.Repeat("x", maxPolicy), "want UTF-8 text of at most 131072 bytes"},
		{good + "paths: [" + strings.Repeat("x,", 20_000) + "]\n", "want at most 10000 values"},
		{"- a\n", "p.yaml:1:1: want keys with values here"},
		{"\xff", "want UTF-8 text"},
	} {
		if _, err := ParsePolicy("p.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.300q:\n%v\nwant %s", c.text, err, c.says)
		}
	}
	both := "version: 1\nsigners: ['" + line + "']\nmatch: no\ngates: [{gate: a, judged: no}]\n"
	if _, err := ParsePolicy("p.yaml", []byte(both)); err == nil || strings.Count(err.Error(), "p.yaml:") != 2 {
		t.Errorf("not all faults: %v", err)
	}
}

// TestJudgedPolicy: a policy that the judged commits could have written is not read.
func TestJudgedPolicy(t *testing.T) {
	conform.Rule(t, "12-evidence judged policy", `"The judged must not choose the judge"`)
	s := newSite(t)
	line, err := s.own.Line("daemon")
	if err != nil {
		t.Fatal(err)
	}
	good := "version: 1\nsigners: ['" + line + "']\ngates: [tests]\n"
	s.git("checkout", "-q", "-b", "base", s.first)
	for _, dir := range []string{"ci", "old"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir, "gates"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(dir+"/gates/gates.yaml", good)
	}
	s.write("gates.yaml", good)
	s.git("add", "-A")
	s.git("commit", "-qm", "policy")
	base := s.git("rev-parse", "HEAD")
	s.git("checkout", "-q", "-b", "topic")
	s.write("gates.yaml", strings.Replace(good, "tests", "lax", 1))
	s.git("commit", "-qam", "a laxer policy")
	s.write("a", "evil\n")
	s.git("commit", "-qam", "evil")
	s.git("rm", "-qr", "ci")
	if err := os.Symlink("old", filepath.Join(s.dir, "ci")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(s.dir, "loop")); err != nil {
		t.Fatal(err)
	}
	s.git("add", "-A")
	s.git("commit", "-qm", "another folder of policies")
	outside := filepath.Join(t.TempDir(), "gates.yaml")
	if err := os.WriteFile(outside, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.dir, "gates.yaml"), outside+".link"); err != nil {
		t.Fatal(err)
	}
	judged, err := Commits(t.Context(), s.repo, "base..HEAD")
	if err != nil || len(judged) != 3 {
		t.Fatal(judged, err)
	}
	inside, there := filepath.Join(s.dir, "gates.yaml"), filepath.Join(t.TempDir(), "checkout")
	if err := os.Symlink(s.dir, there); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, from, gate, says string }{
		{inside, "", "", "which it is to judge, changes it"},
		{filepath.Join(s.dir, "ci", "gates", "gates.yaml"), "", "", "not a regular file"},
		{filepath.Join(there, "ci", "gates", "gates.yaml"), "", "", "not a regular file"},
		{filepath.Join(there, "old", "gates", "gates.yaml"), "", "tests", ""},
		{filepath.Join(s.dir, "loop", "old", "gates", "gates.yaml"), "", "", "not a regular file"},
		{filepath.Join(there, "gates.yaml"), "", "", "which it is to judge, changes it"},
		{outside, "", "tests", ""},
		{outside + ".link", "", "", "not a regular file"},
		{"gates.yaml", "base", "tests", ""},
		{"gates.yaml", base[:12], "tests", ""},
		{"gates.yaml", "HEAD", "", "one of the commits that the policy is to judge"},
		{"gates.yaml", "topic~2", "", "one of the commits that the policy is to judge"},
		{"gates.yaml", "nope", "", "there is no such commit here"},
		{"gates.yaml", "--help", "", "names no commit"},
		{"gates.yaml", "HEAD:gates.yaml", "", "names no commit"},
		{"none.yaml", "base", "", "has no file none.yaml"},
		{"../gates.yaml", "base", "", "with --policy-from it is a file of a commit"},
		{inside, "base", "", "with --policy-from it is a file of a commit"},
		{filepath.Join(s.dir, "none.yaml"), "", "", "no such file"},
	} {
		p, err := ReadPolicy(t.Context(), s.repo, c.file, c.from, judged)
		if c.says == "" && (err != nil || p.Gates[0].Gate != c.gate) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s from %q: %+v %v, want %q", c.file, c.from, p, err, c.says)
		}
	}
}

// TestSpecsOfBase: a run whose spec is not the one of the trusted commit does not count, whatever its gates are called.
func TestSpecsOfBase(t *testing.T) {
	conform.Rule(t, "12-evidence specs", `a gate is what its spec says`)
	s := newSite(t)
	line, err := s.own.Line("daemon")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, ".workflow", "specs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.git("checkout", "-q", "-b", "base", s.first)
	s.write(".workflow/specs/work.yaml", "workflow: {id: work}\n")
	s.write("gates.yaml", "version: 1\nsigners: ['"+line+"']\ngates: [tests]\nspecs: [base]\n")
	s.git("add", "-A")
	s.git("commit", "-qm", "policy")
	s.git("checkout", "-q", "main")
	for file, code := range map[string]int{"workflow: {id: work}\n": CodePass, "workflow: {id: work, gates: lax}\n": CodeUnsatisfied} {
		st := s.statement(s.commit)
		sum := sha256.Sum256([]byte(file))
		st.Predicate.Run.File = hex.EncodeToString(sum[:])
		s.note(s.commit, sealed(t, st, s.own))
		p, err := ReadPolicy(t.Context(), s.repo, "gates.yaml", "base", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.wants(p, code, "")
		st.Predicate.Run.Workflow = "../../gates"
		s.note(s.commit, sealed(t, st, s.own))
		s.wants(p, CodeUnsatisfied, "ran a spec")
	}
	s.git("checkout", "-q", "base")
	if _, err := ReadPolicy(t.Context(), s.repo, filepath.Join(s.dir, "gates.yaml"), "", nil); err == nil || !strings.Contains(err.Error(), "--policy-from origin/main") {
		t.Error(err)
	}
}

// TestCommitsRefused: what is no commit, no range, or not the whole of one is refused.
func TestCommitsRefused(t *testing.T) {
	conform.Rule(t, "12-evidence shallow", `no range in a clone that is not whole`)
	s := newSite(t)
	s.git("checkout", "-q", "--detach")
	short := s.git("rev-parse", "HEAD~1")[:12]
	for _, ref := range []string{"refs/remotes/origin/main", "refs/tags/origin/main", "refs/tags/" + short, "refs/tags/v1", "refs/tags/20240115", "refs/remotes/one/HEAD"} {
		s.git("update-ref", ref, "HEAD")
	}
	for what, n := range map[string]int{"HEAD": 1, "v1": 1, "20240115": 1, "v1~1": 1, "one": 1, s.git("rev-parse", "HEAD~1"): 1, "refs/remotes/origin/main": 1, "HEAD~1..v1^0": 1} {
		if got, err := Commits(t.Context(), s.repo, what); err != nil || len(got) != n {
			t.Errorf("%q: %v %v", what, got, err)
		}
	}
	for what, says := range map[string]string{"origin/main..HEAD": "several meanings: refs/tags/origin/main, refs/remotes/origin/main",
		"origin/main~1^0..HEAD": "several meanings", "origin/main@{0}": "several meanings", short: "refs/tags/" + short + ", an object", "nope": "no such commit", "": "names no commit", "HEAD...main": "is no range",
		"..HEAD": "is no range", "HEAD..": "is no range", "-x..HEAD": "names no commit", "HEAD..a b": "names no commit"} {
		if got, err := Commits(t.Context(), s.repo, what); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v %v, want %q", what, got, err, says)
		}
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	s.git("clone", "-q", "--depth=1", "file://"+s.dir, shallow)
	repo, err := git.Open(context.Background(), shallow)
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	_, err = Commits(t.Context(), repo, "HEAD")
	var f *fault.Error
	if f, _ = err.(*fault.Error); f == nil || f.Code != fault.ExitUsage || !strings.Contains(f.Advice, "fetch-depth: 0") {
		t.Errorf("a shallow clone: %v", err)
	}
}

// TestForgeTrust: a word at the forge is above the sandbox, and below a signature.
func TestForgeTrust(t *testing.T) {
	conform.Rule(t, "12-evidence trust", "the trust levels of a policy are those of answers, in their order")
	s := newSite(t)
	for _, c := range []struct {
		has, want string
		code      int
	}{
		{"forge", "file", CodePass}, {"forge", "sandbox", CodePass}, {"forge", "forge", CodePass},
		{"sandbox", "forge", CodeUnsatisfied}, {"better", "file", CodeUnsatisfied},
	} {
		st := s.statement(s.commit)
		st.Predicate.Gates[1].Rounds[0].Trust = c.has
		s.note(s.commit, sealed(t, st, s.own))
		s.wants(s.policy("gates: [{gate: approve, trust: "+c.want+"}]"), c.code, "approve")
	}
}

// TestUnknownStart: a start that is not here asks nothing of nobody, so it is refused.
func TestUnknownStart(t *testing.T) {
	s := newSite(t)
	commits, err := Commits(t.Context(), s.repo, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	v := Verifier{Repo: s.repo, Policy: s.policy("start: " + strings.Repeat("1", 40))}
	if _, err := v.Verify(t.Context(), commits); err == nil || !strings.Contains(err.Error(), "is no commit here") {
		t.Error(err)
	}
}

// TestPAE is the example of DSSE's own protocol.
func TestPAE(t *testing.T) {
	if got := string(pae("http://example.com/HelloWorld", []byte("hello world"))); got != "DSSEv1 29 http://example.com/HelloWorld 11 hello world" {
		t.Error(got)
	}
}
