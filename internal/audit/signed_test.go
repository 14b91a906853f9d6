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
	text := approval.Approval{Repo: "r", Run: "w-1", Gate: "G", Round: 1, Decision: "pass", Reviewed: "d", Nonce: strings.Repeat("0a", 16), Expires: time.Now(), Answer: `{"n":1}`}.Text()
	cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", approval.GateNamespace, "-f", file)
	cmd.Stdin = strings.NewReader(string(text))
	armored, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	proof := string(approval.Join(text, armored))
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
		s := signatures{given: map[string]approval.Approval{"w-1 G #1": {Findings: c.signed}}}
		if why := s.look(factOf(t, failed, c.fact)); c.says == "" && why != "" || !strings.Contains(why, c.says) {
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
