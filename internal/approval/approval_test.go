package approval

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sluice/tools/conform"
)

func anApproval() Approval {
	return Approval{Repo: "app-1a2b", Run: "phase-4-2", Gate: "XG-1-2", Round: 3, Decision: "pass", Reviewed: "d1", Nonce: strings.Repeat("0a", 16),
		Expires: time.Date(2026, 11, 21, 17, 30, 0, 0, time.UTC), Words: "well done\r\n\nmind the log level"}
}

func TestApprovalText(t *testing.T) {
	a := anApproval()
	text := a.Text()
	want := "sluice approval 1\nrepo: app-1a2b\nrun: phase-4-2\ngate: XG-1-2\nround: 3\ndecision: pass\nreviewed: d1\nnonce: " + a.Nonce +
		"\nexpires: 2026-11-21T17:30:00Z\n\nwell done\n\nmind the log level\n"
	if string(text) != want {
		t.Errorf("%q, want %q", text, want)
	}
	got, err := ParseApproval(text)
	if a.Words = Words(a.Words); err != nil || got != a {
		t.Errorf("%+v %v, want %+v", got, err, a)
	}
	a.Answer = `{"name":"a: b","replicas":2,"text":"` + strings.Repeat("x", 2000) + `"}`
	want = strings.Replace(strings.Replace(want, "approval 1", "approval 2", 1), "00Z\n", "00Z\nanswer: "+a.Answer+"\n", 1)
	if got, err := ParseApproval(a.Text()); err != nil || got != a || string(a.Text()) != want || !Looks(a.Text()) {
		t.Errorf("%+v %v, want %+v", got, err, a)
	}
	a.Answer, a.Findings = "", `[{"file":"a.go","line":3,"message":"`+strings.Repeat("x", 2000)+`"}]`
	want = strings.Replace(strings.Replace(string(anApproval().Text()), "approval 1", "approval 3", 1), "00Z\n", "00Z\nfindings: "+a.Findings+"\n", 1)
	if got, err := ParseApproval(a.Text()); err != nil || got != a || string(a.Text()) != want || !Looks(a.Text()) {
		t.Errorf("%+v %v, want %+v", got, err, a)
	}
	a.Words, a.Reviewed, a.Findings = "", "", ""
	if got, err := ParseApproval(a.Text()); err != nil || got != a {
		t.Errorf("%+v %v, want %+v", got, err, a)
	}
}

// A text has one reading, and what is not as we write it has none.
func TestApprovalTextOther(t *testing.T) {
	good := string(anApproval().Text())
	for name, bad := range map[string]string{
		"another head":        strings.Replace(good, "approval 1", "approval 3", 1),
		"a line more":         strings.Replace(good, "gate:", "also: x\ngate:", 1),
		"a line doubled":      strings.Replace(good, "gate: XG-1-2\n", "gate: XG-1-2\ngate: XG-1-3\n", 1),
		"a line less":         strings.Replace(good, "gate: XG-1-2\n", "", 1),
		"an answer":           strings.Replace(good, "00Z\n", "00Z\nanswer: {}\n", 1),
		"no answer":           strings.Replace(good, "approval 1", "approval 2", 1),
		"no findings":         strings.Replace(good, "approval 1", "approval 3", 1),
		"findings as written": strings.Replace(strings.Replace(good, "approval 1", "approval 3", 1), "00Z\n", "00Z\nfindings: [ \"x\" ]\n", 1),
		"findings: an object": strings.Replace(strings.Replace(good, "approval 1", "approval 3", 1), "00Z\n", "00Z\nfindings: {}\n", 1),
		"answer and findings": strings.Replace(strings.Replace(good, "approval 1", "approval 3", 1), "00Z\n", "00Z\nanswer: {}\nfindings: [{\"message\":\"x\"}]\n", 1),
		"answer: a list":      strings.Replace(strings.Replace(good, "approval 1", "approval 2", 1), "00Z\n", "00Z\nanswer: [1]\n", 1),
		"answer twice":        strings.Replace(strings.Replace(good, "approval 1", "approval 2", 1), "00Z\n", "00Z\nanswer: {}\nanswer: {}\n", 1),
		"answer: a key twice": strings.Replace(strings.Replace(good, "approval 1", "approval 2", 1), "00Z\n", "00Z\nanswer: {\"a\":1,\"a\":2}\n", 1),
		"round 0":             strings.Replace(good, "round: 3", "round: 0", 1),
		"round 03":            strings.Replace(good, "round: 3", "round: 03", 1),
		"round +3":            strings.Replace(good, "round: 3", "round: +3", 1),
		"a short nonce":       strings.Replace(good, "nonce: 0a", "nonce: ", 1),
		"an odd nonce":        strings.Replace(good, "nonce: 0a", "nonce: 0A", 1),
		"a local time":        strings.Replace(good, "00Z", "00+01:00", 1),
		"fractions":           strings.Replace(good, "00Z", "00.5Z", 1),
		"space at the end":    good + " ",
		"words run on":        strings.Replace(good, "\n\nwell", "\nwell", 1),
		"a NUL":               strings.Replace(good, "well", "we\x00ll", 1),
		"no UTF-8":            strings.Replace(good, "well", "we\xffll", 1),
		"much":                good + strings.Repeat("x", MaxBytes),
		"a checkpoint":        string(Checkpoint{Repo: "r", Seq: 1, Sum: "ab", At: time.Now()}.Text()),
	} {
		if bad == good {
			t.Fatalf("%s: is the good one", name)
		}
		if a, err := ParseApproval([]byte(bad)); err == nil {
			t.Errorf("%s: read as %+v", name, a)
		}
	}
}

func TestCheckpointText(t *testing.T) {
	c := Checkpoint{Repo: "app-1a2b", Seq: 17, Sum: "ab12", At: time.Date(2026, 11, 21, 17, 30, 0, 0, time.UTC)}
	if got, err := ParseCheckpoint(c.Text()); err != nil || got != c {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{strings.Replace(string(c.Text()), "17\n", "-17\n", 1), strings.Replace(string(c.Text()), "17\n", "017\n", 1), string(c.Text()) + "x"} {
		if c, err := ParseCheckpoint([]byte(bad)); err == nil {
			t.Errorf("%q: read as %+v", bad, c)
		}
	}
}

// keygen makes a key with the real ssh-keygen and gives the file of its private half.
func keygen(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs: ssh-keygen (apt-get install openssh-client)")
	}
	file := filepath.Join(t.TempDir(), "key")
	args = append([]string{"-q", "-N", "", "-C", "a comment", "-f", file}, args...)
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %v: %v: %s", args, err, out)
	}
	return file
}

func signWith(t *testing.T, file, namespace string, text []byte, more ...string) []byte {
	t.Helper()
	cmd := exec.Command("ssh-keygen", append([]string{"-q", "-Y", "sign", "-n", namespace, "-f", file}, more...)...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ssh-keygen -Y sign: %v", err)
	}
	return Join(text, out)
}

func publicOf(t *testing.T, file string) Signer {
	t.Helper()
	data, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseKey(data)
	if err != nil {
		t.Fatal(err)
	}
	s.Names = []string{"ann@example.org", "ann"}
	return s
}

// TestVerifyKinds checks what the real ssh-keygen signs, with each kind of key and each hash.
func TestVerifyKinds(t *testing.T) {
	conform.Rule(t, "4-trust signed", "what ssh-keygen signs holds, for each kind of key")
	text := anApproval().Text()
	for _, kind := range [][]string{{"-t", "ed25519"}, {"-t", "ecdsa", "-b", "256"}, {"-t", "ecdsa", "-b", "384"}, {"-t", "ecdsa", "-b", "521"}, {"-t", "rsa", "-b", "2048"}} {
		file := keygen(t, kind...)
		list := List{Signers: []Signer{publicOf(t, file)}}
		for _, hash := range []string{"sha512", "sha256"} {
			signed := signWith(t, file, GateNamespace, text, "-O", "hashalg="+hash)
			got, by, err := list.Verify(signed, GateNamespace)
			if err != nil || !bytes.Equal(got, text) || by.Names[0] != "ann@example.org" {
				t.Errorf("%v %s: %v", kind, hash, err)
			}
			if _, _, err := list.Verify(bytes.ReplaceAll(signed, []byte("\n"), []byte("\r\n")), GateNamespace); err != nil {
				t.Errorf("%v %s: with the line ends of another system: %v", kind, hash, err)
			}
		}
	}
}

// TestVerifyRefuses has each way in which a signature is none told by its reason.
func TestVerifyRefuses(t *testing.T) {
	conform.Rule(t, "4-trust signed", "each way in which it does not hold has its reason")
	file, other := keygen(t, "-t", "ed25519"), keygen(t, "-t", "ed25519")
	ann := publicOf(t, file)
	list := List{Signers: []Signer{ann}}
	text := anApproval().Text()
	good := signWith(t, file, GateNamespace, text)
	narrow := ann
	narrow.spaces = []string{AuditNamespace}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	frame := bytes.Index(good, []byte(beginSignature))
	for name, c := range map[string]struct {
		list List
		data []byte
		says string
	}{
		"changed":         {list, bytes.Replace(good, []byte("decision: pass"), []byte("decision: fail"), 1), "which was changed after it was signed"},
		"words added":     {list, bytes.Replace(good, []byte("well"), []byte("very well"), 1), "which was changed after it was signed"},
		"another's":       {list, signWith(t, other, GateNamespace, text), "is not known: sluice keys ls"},
		"nobody's":        {List{}, good, "no approver is set up in this repo"},
		"another space":   {list, signWith(t, file, "file", text), `it was signed for "file", and sluice-gate is wanted`},
		"audit's":         {list, signWith(t, file, AuditNamespace, text), `it was signed for "sluice-audit"`},
		"narrow":          {List{Signers: []Signer{narrow}}, good, "is not for sluice-gate"},
		"revoked":         {List{Signers: []Signer{ann}, Revoked: []Revoked{{Key: ann.Key, Names: ann.Names, At: at, Why: "lost"}}}, good, "of ann@example.org was revoked on 2026-11-20 09:00Z (lost)"},
		"unsigned":        {list, text, "there is no signature below the text"},
		"cut":             {list, good[:len(good)-20], "the signature is not whole"},
		"something after": {list, append(bytes.Clone(good), "and more\n"...), "the signature is not whole"},
		"much":            {list, append(bytes.Repeat([]byte("x"), MaxBytes), good...), "more than 65536 bytes"},
		"another's armor": {list, Join(text, signWith(t, other, GateNamespace, []byte("x"))[len("x"):]), "which was changed after it was signed"},
		"not a signature": {list, Join(text, []byte(beginSignature+"\nAAAA\n"+endSignature)), "the signature cannot be read"},
		"in the line":     {list, append([]byte("x"), good[frame:]...), "there is no signature below the text"},
	} {
		if _, _, err := c.list.Verify(c.data, GateNamespace); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// token signs as a FIDO token does.
func token(t *testing.T, text []byte, flags byte) (Signer, []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	const app = "ssh:"
	blob := ssh.Marshal(struct {
		Kind string
		Key  []byte
		App  string
	}{ssh.KeyAlgoSKED25519, public, app})
	sum := sha512.Sum512(text)
	message := append([]byte(sigMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{GateNamespace, "", "sha512", string(sum[:])})...)
	appSum, msgSum := sha256.Sum256([]byte(app)), sha256.Sum256(message)
	sealed := append(append(bytes.Clone(appSum[:]), flags, 0, 0, 0, 7), msgSum[:]...)
	sig := append(ssh.Marshal(struct {
		Format string
		Blob   []byte
	}{ssh.KeyAlgoSKED25519, ed25519.Sign(private, sealed)}), flags, 0, 0, 0, 7)
	whole := append([]byte(sigMagic), ssh.Marshal(sshsig{1, string(blob), GateNamespace, "", "sha512", string(sig)})...)
	key, err := ParseKey([]byte(ssh.KeyAlgoSKED25519 + " " + base64.StdEncoding.EncodeToString(blob) + " token"))
	if err != nil {
		t.Fatal(err)
	}
	key.Names = []string{"ann"}
	return key, Join(text, pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: whole}))
}

// A token's signature counts only with a touch.
func TestVerifyTouch(t *testing.T) {
	text := anApproval().Text()
	for flags, ok := range map[byte]bool{1: true, 5: true, 0: false, 4: false} {
		key, signed := token(t, text, flags)
		_, _, err := List{Signers: []Signer{key}}.Verify(signed, GateNamespace)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "not touched") {
			t.Errorf("flags %d: %v", flags, err)
		}
		if !key.Hardware() {
			t.Error("a token's key is not known as one")
		}
	}
}

// RSA with SHA-1 is no signature, though the library would take it.
func TestVerifyWeak(t *testing.T) {
	s := signature{blob: sshsig{Namespace: GateNamespace, Hash: "sha512"}}
	key, err := os.ReadFile(keygen(t, "-t", "rsa", "-b", "2048"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte("x"))
	message := append([]byte(sigMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{GateNamespace, "", "sha512", string(sum[:])})...)
	for algo, ok := range map[string]bool{ssh.KeyAlgoRSA: false, ssh.KeyAlgoRSASHA512: true} {
		sig, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(nil, message, algo)
		if err != nil {
			t.Fatal(err)
		}
		s.key, s.sig = signer.PublicKey(), *sig
		if err := s.check([]byte("x"), GateNamespace); (err == nil) != ok {
			t.Errorf("%s: %v", algo, err)
		}
	}
	s.blob.Hash = "md5"
	if err := s.check([]byte("x"), GateNamespace); err == nil {
		t.Error("a hash that is not known was taken")
	}
}

func TestParseList(t *testing.T) {
	key := publicOf(t, keygen(t, "-t", "ed25519"))
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseList([]byte("# a list\n\nann@example.org,ann namespaces=\"sluice-gate\" " + public + " her key\r\n"))
	if err != nil || len(got) != 1 || fmt.Sprint(got[0].Names, got[0].spaces)+got[0].Comment != "[ann@example.org ann] [sluice-gate]her key" || got[0].Key != key.Key {
		t.Errorf("%+v %v", got, err)
	}
	for name, line := range map[string]string{
		"an option that takes away": `ann valid-before="20200101" ` + public,
		"an authority":              "ann cert-authority " + public,
		"a pattern":                 "*@example.org " + public,
		"not this one":              "!ann " + public,
		"no key":                    "ann",
		"no name":                   public,
		"a quoted name":             `"ann" ` + public,
		"too many":                  strings.Repeat("ann "+public+"\n", maxKeys+1),
	} {
		if got, err := ParseList([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	if _, err := ParseKey([]byte(`command="x" ` + public)); err == nil {
		t.Error("a key with options was taken")
	}
}

func TestStore(t *testing.T) {
	s := Store{State: t.TempDir()}
	if l, err := s.Load(); err != nil || len(l.Signers) != 0 {
		t.Fatalf("%+v %v", l, err)
	}
	file := keygen(t, "-t", "ed25519")
	ann, bob := publicOf(t, file), publicOf(t, keygen(t, "-t", "ed25519"))
	bob.Names = []string{"bob@example.org"}
	for _, k := range []Signer{ann, bob} {
		if err := s.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	ann.Names = []string{"ann@example.org", "ann", "a.n@example.org"}
	if err := s.Add(ann); err != nil { // again, with one name more
		t.Fatal(err)
	}
	l, err := s.Load()
	if err != nil || len(l.Signers) != 2 || len(l.Signers[1].Names) != 3 || l.Signers[1].Comment != "a comment" {
		t.Fatalf("%+v %v", l, err)
	}
	if info, err := os.Stat(s.ListFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	signed := signWith(t, file, GateNamespace, anApproval().Text())
	if _, by, err := l.Verify(signed, GateNamespace); err != nil || by.Names[0] != "ann@example.org" {
		t.Error(err)
	}
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if err := s.Revoke(Revoked{Key: ann.Key, At: at, Why: "lost", By: "root"}); err != nil {
		t.Fatal(err)
	}
	if l, err = s.Load(); err != nil || len(l.Signers) != 1 || len(l.Revoked) != 1 || l.Revoked[0].Names[0] != "ann@example.org" {
		t.Fatalf("%+v %v", l, err)
	}
	if _, _, err := l.Verify(signed, GateNamespace); err == nil || !strings.Contains(err.Error(), "was revoked on 2026-11-21") {
		t.Error(err)
	}
	if err := s.Add(ann); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("a revoked key was added again: %v", err)
	}
	if err := s.Revoke(Revoked{Key: ann.Key}); err == nil {
		t.Error("a key was revoked twice")
	}
	if err := s.Place(bob.Key, "/k"); err != nil || s.Places()[bob.Key] != "/k" {
		t.Errorf("%v %v", s.Places(), err)
	}
	if err := os.Chmod(s.ListFile(), 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), "others can write it") {
		t.Errorf("a list that others may write: %v", err)
	}
	if err := os.Chmod(s.ListFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	// What cannot be read may hold a revocation: then nothing counts.
	for _, name := range []string{revokedFile, listFile} {
		if err := os.WriteFile(filepath.Join(s.State, folder, name), []byte("{\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); err == nil {
			t.Errorf("%s: cannot be read, and nothing was said", name)
		}
	}
	if err := os.RemoveAll(filepath.Join(s.State, folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(s.State, folder)); err != nil {
		t.Skip("no links here")
	}
	if _, err := s.Load(); err == nil {
		t.Error("a link for the folder was followed")
	}
}

func TestPlain(t *testing.T) {
	open := keygen(t, "-t", "ed25519")
	locked := keygen(t, "-t", "ed25519")
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", locked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for file, want := range map[string]bool{open: true, locked: false} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := Plain(data); err != nil || plain != want {
			t.Errorf("%v %v, want %v", plain, err, want)
		}
	}
	if _, err := Plain([]byte("x")); err == nil {
		t.Error("what is no key has an answer")
	}
}

func TestSplitAll(t *testing.T) {
	file := keygen(t, "-t", "ed25519")
	one := signWith(t, file, AuditNamespace, Checkpoint{Repo: "r", Seq: 1, Sum: "ab", At: time.Now()}.Text())
	two := signWith(t, file, AuditNamespace, Checkpoint{Repo: "r", Seq: 2, Sum: "cd", At: time.Now()}.Text())
	list := List{Signers: []Signer{publicOf(t, file)}}
	all := SplitAll(bytes.Join([][]byte{one, two, []byte("a rest")}, []byte("\n")))
	if len(all) != 2 {
		t.Fatalf("%d texts", len(all))
	}
	for i, signed := range all {
		text, _, err := list.Verify(signed, AuditNamespace)
		if c, perr := ParseCheckpoint(text); err != nil || perr != nil || c.Seq != int64(i+1) {
			t.Errorf("%d: %+v %v %v", i, c, err, perr)
		}
	}
}

// FuzzSigned: whatever comes in is read or refused, never more than that, and what is read is read in one way.
func FuzzSigned(f *testing.F) {
	f.Add(anApproval().Text())
	f.Add(Join(anApproval().Text(), []byte(beginSignature+"\nU1NIU0lH\n"+endSignature)))
	f.Add([]byte("ann namespaces=\"x\" ssh-ed25519 AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := ParseApproval(data); err == nil && !bytes.Equal(a.Text(), data) {
			t.Errorf("%q is read as %+v", data, a)
		}
		if c, err := ParseCheckpoint(data); err == nil && !bytes.Equal(c.Text(), data) {
			t.Errorf("%q is read as %+v", data, c)
		}
		if _, _, err := (List{}).Verify(data, GateNamespace); err == nil {
			t.Errorf("%q is signed by nobody and holds", data)
		}
		_, _ = ParseList(data) // it may be refused
		SplitAll(data)
		Looks(data)
	})
}

// BenchmarkVerify is what a signed answer costs: the list read anew, and one signature checked.
func BenchmarkVerify(b *testing.B) {
	file := filepath.Join(b.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", file).CombinedOutput(); err != nil {
		b.Skipf("needs: ssh-keygen (apt-get install openssh-client): %v %s", err, out)
	}
	data, err := os.ReadFile(file + ".pub")
	if err != nil {
		b.Fatal(err)
	}
	key, err := ParseKey(data)
	if err != nil {
		b.Fatal(err)
	}
	key.Names = []string{"ann"}
	s := Store{State: b.TempDir()}
	if err := s.Add(key); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", GateNamespace, "-f", file)
	text := anApproval().Text()
	cmd.Stdin = bytes.NewReader(text)
	armored, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	signed := Join(text, armored)
	for b.Loop() {
		l, err := s.Load()
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := l.Verify(signed, GateNamespace); err != nil {
			b.Fatal(err)
		}
	}
}
