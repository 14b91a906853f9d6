package evidence

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/approval"
	"sluice/tools/conform"
)

// person is somebody with an OpenSSH key.
type person struct{ name, file, line string }

func newPerson(t *testing.T, name string) person {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs: ssh-keygen (apt-get install openssh-client)")
	}
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return person{name, file, name + " " + strings.TrimSpace(string(public))}
}

func (p person) sign(t *testing.T, text []byte, namespace string) string {
	t.Helper()
	cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", p.file)
	cmd.Stdin = strings.NewReader(string(text))
	armored, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(approval.Join(text, armored))
}

// TestSignedAnswers: who has the daemon's key forges no signed answer.
func TestSignedAnswers(t *testing.T) {
	conform.Rule(t, "12-evidence signed answers", `no forged answer`)
	s := newSite(t)
	ann, bob := newPerson(t, "ann@example.org"), newPerson(t, "bob@example.org")
	given := approval.Approval{Repo: "r-1", Run: "work-1", Gate: "approve", Round: 1, Decision: "pass", Reviewed: s.commit,
		Nonce: strings.Repeat("0a", 16), Expires: time.Unix(1e9, 0)}
	proof := func(by person, change func(*approval.Approval)) string {
		a := given
		change(&a)
		return by.sign(t, a.Text(), approval.GateNamespace)
	}
	same := func(*approval.Approval) {}
	for _, c := range []struct {
		name, proof string
		code        int
		words       string
	}{
		{"as it was", proof(ann, same), CodePass, "approve passed by"},
		{"none", "", CodeForged, "there is no signature"},
		{"of somebody else", proof(bob, same), CodeUnsatisfied, "bob@example.org passed it, and the policy requires ann@example.org"},
		{"of a key that is not listed", proof(newPerson(t, "ann@example.org"), same), CodeForged, "is not known"},
		{"changed afterwards", strings.Replace(proof(ann, same), "round: 1", "round: 2", 1), CodeForged, "changed after it was signed"},
		{"of another commit", proof(ann, func(a *approval.Approval) { a.Reviewed = s.first }), CodeForged, "another answer"},
		{"of other files beside the commit", proof(ann, func(a *approval.Approval) { a.Reviewed += "+0123456789abcdef" }), CodeForged, "another answer"},
		{"of another run", proof(ann, func(a *approval.Approval) { a.Run = "work-2" }), CodeForged, "another answer"},
		{"of another gate", proof(ann, func(a *approval.Approval) { a.Gate = "plan" }), CodeForged, "another answer"},
		{"of another round", proof(ann, func(a *approval.Approval) { a.Round = 2 }), CodeForged, "another answer"},
		{"of another repo", proof(ann, func(a *approval.Approval) { a.Repo = "r-2" }), CodeForged, "another answer"},
		{"a fail", proof(ann, func(a *approval.Approval) { a.Decision = "fail" }), CodeForged, "another answer"},
		{"for another purpose", ann.sign(t, given.Text(), approval.AuditNamespace), CodeForged, "it was signed for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			st := s.statement(s.commit)
			q := &st.Predicate.Gates[1].Rounds[0]
			q.Who, q.Trust, q.Proof = "ann@example.org", "signed", c.proof
			s.note(s.commit, sealed(t, st, s.own))
			keys := "approvers: ['" + ann.line + "', '" + bob.line + "']\ngates:\n  - tests\n  - "
			s.wants(s.policy(keys+"{gate: approve, trust: signed, by: [ann@example.org]}"), c.code, c.words)
			s.wants(s.policy(keys+"{gate: approve, by: [ann@example.org]}"), c.code, c.words)
			s.wants(s.policy(keys+"approve"), CodePass, "ann@example.org (signed)")
		})
	}
	t.Run("a tree that the judged commit has not", func(t *testing.T) {
		s.t = t
		st := s.statement(s.commit)
		st.Predicate.Gates[1].Rounds[0] = Round{N: 1, State: "passed", By: "human", Who: "ann@example.org", Trust: "signed", At: st.Predicate.Made.At,
			Reviewed: s.first, Judged: Digest{s.first, s.tree(s.commit)}, Proof: proof(ann, func(a *approval.Approval) { a.Reviewed = s.first })}
		s.note(s.commit, sealed(t, st, s.own))
		s.wants(s.policy("approvers: ['"+ann.line+"']\ngates: [{gate: approve, trust: signed}]"), CodeForged, "names another tree for "+s.first[:12])
	})
}

// TestPersonSigns: a statement that a person signed counts by their key, in its own namespace.
func TestPersonSigns(t *testing.T) {
	conform.Rule(t, "12-evidence statement", `signed by a person`)
	s := newSite(t)
	ann := newPerson(t, "ann@example.org")
	key, err := approval.Keyring{Env: os.Environ()}.Find(t.Context(), approval.Store{}, ann.file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, code := range map[string]int{approval.EvidenceNamespace: CodePass, approval.GateNamespace: CodeForged} {
		line, err := Seal(s.statement(s.commit), func(message []byte) ([]byte, string, error) {
			return approval.Keyring{Env: os.Environ()}.SignDetached(t.Context(), key, message, namespace)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.note(s.commit, string(line))
		p, err := ParsePolicy("p", []byte("version: 1\nsigners: ['"+ann.line+"']\ngates: [tests, approve]\n"))
		if err != nil {
			t.Fatal(err)
		}
		s.wants(p, code, "")
	}
}
