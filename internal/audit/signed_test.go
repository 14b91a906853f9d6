package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/findings"
	"sluice/internal/text"
)

// TestSignedOnRecord: a record that says another thing than what was signed does not hold.
func TestSignedOnRecord(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs: ssh-keygen (apt-get install openssh-client)")
	}
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approval.ParseKey(public)
	if err != nil {
		t.Fatal(err)
	}
	key.Names = []string{"ann"}
	signed := approval.Approval{Repo: "r", Run: "w-1", Gate: "G", Round: 1, Decision: "pass", Reviewed: "d", Nonce: strings.Repeat("0a", 16), Expires: time.Now(), Answer: `{"n":1}`}.Text()
	cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", approval.GateNamespace, "-f", file)
	cmd.Stdin = strings.NewReader(string(signed))
	armored, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	proof := string(approval.Join(signed, armored))
	by := fmt.Sprintf(`{"who":"ann","trust":"signed","key":%q}`, key.Key)
	for _, c := range []struct {
		name, used, passed, says string
	}{
		{"as it was", "", "", ""},
		{"another answer", "", `"answer":{"n":2}`, "the recorded answer differs from the signed one"},
		{"no answer", "", `"answer":null`, "the recorded answer differs from the signed one"},
		{"another round", `"n":2`, "", "differs from the recorded"},
		{"another outcome", `"outcome":"fail"`, "", "differs from the recorded"},
		{"another key", `"by":{"who":"ann","trust":"signed","key":"SHA256:x"}`, "", "differs from the recorded"},
		{"a changed text", `"proof":` + quoted(strings.Replace(proof, `{"n":1}`, `{"n":2}`, 1)), "", "which was changed after it was signed"},
		{"no signature", `"proof":""`, "", "there is no signature"},
		{"none on record", "-", "", "no signature is on record"},
	} {
		s := signatures{list: approval.List{Signers: []approval.Signer{key}}, given: map[string]approval.Approval{}}
		why := ""
		if c.used != "-" {
			why = s.look(factOf(t, `{"kind":"signature_used","run":"w-1","gate":"G","n":1,"outcome":"pass","nonce":"`+strings.Repeat("0a", 16)+`","by":`+by+`,"proof":`+quoted(proof)+`}`, c.used))
		}
		if why == "" {
			why = s.look(factOf(t, `{"kind":"round_passed","run":"w-1","gate":"G","n":1,"by_kind":"human","by":`+by+`,"answer":{"n":1}}`, c.passed))
		}
		if c.says == "" && why != "" || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, why, c.says)
		}
	}
}

// TestSignedComments: the comments on record are those that were signed.
func TestSignedComments(t *testing.T) {
	by := `{"who":"ann","trust":"signed","key":"SHA256:x"}`
	failed := `{"kind":"round_failed","run":"w-1","gate":"G","n":1,"outcome":"fail","to":"A","by_kind":"human","by":` + by + `,"findings":[{"message":"m"}]}`
	for _, c := range []struct{ name, signed, fact, says string }{
		{"as it was", `[{"message":"m"}]`, "", ""},
		{"others", `[{"message":"n"}]`, "", "the recorded comments differ from the signed ones"},
		{"added", "", "", "the recorded comments differ from the signed ones"},
		{"left out", `[{"message":"m"}]`, `"findings":null`, "the recorded comments differ from the signed ones"},
		{"of somebody who did not sign", "", `"by":{"who":"ann","trust":"file"}`, ""},
	} {
		s := signatures{given: map[string]approval.Approval{"w-1 G #1": {Decision: "fail", Findings: c.signed}}}
		if why := s.look(factOf(t, failed, c.fact)); c.says == "" && why != "" || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, why, c.says)
		}
	}
}

// TestSignedEscaped: the journal escapes <, > and &, the signed text does not, and they are the same.
func TestSignedEscaped(t *testing.T) {
	comments, err := findings.Encode([]findings.Finding{{File: "a.go", Line: 3, Message: "if a && b < c, why?"}})
	if err != nil {
		t.Fatal(err)
	}
	answer := json.RawMessage(`{"name":"R&D <web>"}`)
	by := &engine.Actor{Who: "ann", Trust: engine.TrustSigned, Key: "SHA256:x"}
	failed := engine.RoundFailed{Gate: "G", N: 1, Outcome: "fail", ByKind: "human", By: by, Findings: comments}
	passed := engine.RoundPassed{Gate: "G", N: 1, ByKind: "human", By: by, Answer: answer}
	for _, c := range []struct {
		name string
		fact engine.Fact
		a    approval.Approval
		says string
	}{
		{"comments", failed, approval.Approval{Decision: "fail", Findings: string(comments)}, ""},
		{"other comments", failed, approval.Approval{Decision: "fail",
			Findings: strings.Replace(string(comments), "<", ">", 1)}, "the recorded comments differ"},
		{"an answer", passed, approval.Approval{Decision: "pass", Answer: string(answer)}, ""},
		{"another answer", passed, approval.Approval{Decision: "pass", Answer: `{"name":"R&D >web>"}`},
			"the recorded answer differs"},
	} {
		raw, err := engine.EncodeFact(c.fact)
		if err != nil {
			t.Fatal(err)
		}
		s := signatures{given: map[string]approval.Approval{"w-1 G #1": c.a}}
		if why := s.look(factOf(t, string(raw), `"run":"w-1"`)); c.says == "" && why != "" || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, why, c.says)
		}
	}
}

// TestSignedDecisions: a decision and its words on record are those that were signed.
func TestSignedDecisions(t *testing.T) {
	long := strings.Repeat("é", engine.MaxFeedback)
	cut := quoted(text.Cut(long, engine.MaxFeedback, "\n[cut]"))
	is := func(decision, words string) *approval.Approval {
		return &approval.Approval{Decision: decision, Words: words}
	}
	const other = "the recorded words differ"
	for _, c := range []struct {
		name, kind string
		signed     *approval.Approval
		fact, says string
	}{
		{"a fail", "round_failed", is("fail", "no"), `"outcome":"fail","feedback":"no"`, ""},
		{"a veto", "round_failed", is("veto", "no"), `"outcome":"fail","feedback":"no"`, ""},
		{"a route of an older release", "round_failed", is("replan", ""), `"outcome":"replan"`, ""},
		{"no signature", "round_failed", nil, `"outcome":"fail"`, "no signature is on record"},
		{"a signed pass", "round_failed", is("pass", ""), `"outcome":"fail"`, "pass was signed"},
		{"a signed fail", "round_passed", is("fail", ""), ``, "fail was signed"},
		{"another route", "round_failed", is("fail", ""), `"outcome":"replan"`, "fail was signed"},
		{"other words", "round_failed", is("fail", "no"), `"outcome":"fail","feedback":"yes"`, other},
		{"words left out", "round_failed", is("fail", "no"), `"outcome":"fail"`, other},
		{"the reviewer's words", "round_failed", is("fail", ""), `"outcome":"fail","feedback":"r"`, ""},
		{"long words", "round_failed", is("fail", long), `"outcome":"fail","feedback":` + cut, ""},
		{"long words left out", "round_failed", is("fail", long), `"outcome":"fail","feedback":"\n[cut]"`, other},
		{"other long words", "round_failed", is("fail", "x"+long), `"outcome":"fail","feedback":` + cut, other},
		{"a pass", "round_passed", is("pass", "a < b"), `"feedback":"a < b"`, ""},
		{"a pass of an older release", "round_passed", is("pass", "well"), `"text":"well"`, ""},
		{"a pass with words added", "round_passed", is("pass", ""), `"feedback":"well"`, other},
	} {
		s := signatures{given: map[string]approval.Approval{}}
		if c.signed != nil {
			s.given["w-1 G #1"] = *c.signed
		}
		raw := `{"kind":"` + c.kind + `","run":"w-1","gate":"G","n":1,"by_kind":"human","by":{"who":"ann","trust":"signed"}}`
		if why := s.look(factOf(t, raw, c.fact)); c.says == "" && why != "" || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, why, c.says)
		}
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// factOf is a fact with a member of it changed.
func factOf(t *testing.T, raw, changed string) engine.Fact {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &members); err != nil {
		t.Fatal(err)
	}
	if changed != "" && changed != "-" {
		if err := json.Unmarshal([]byte("{"+changed+"}"), &members); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	f, err := engine.DecodeFact(b)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return f
}
