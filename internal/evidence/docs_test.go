package evidence

import (
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sluice/tools/conform"
)

// blocks are the YAML blocks of docs/evidence.md.
func blocks(t *testing.T) (doc string, out []string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		out = append(out, block)
	}
	if len(out) != 2 {
		t.Fatalf("%d blocks of YAML", len(out))
	}
	return string(data), out
}

// TestDocumentedPolicy: the policy of the document is one, and the document has every key.
func TestDocumentedPolicy(t *testing.T) {
	doc, all := blocks(t)
	p, err := ParsePolicy("docs/evidence.md", []byte(all[0]))
	if err != nil || len(p.Gates) != 3 || len(p.Signers.Signers) != 1 || len(p.Approvers.Signers) != 1 {
		t.Errorf("%+v %v", p, err)
	}
	_, err = ParsePolicy("p", []byte("x: 1\nzzz: 1\n"))
	if err == nil {
		t.Fatal("unknown keys are taken")
	}
	for _, key := range []string{"version", "signers", "approvers", "pages", "gates", "accept", "match", "unfinished", "workflows", "specs",
		"start", "paths", "exempt", "gate", "judged", "trust", "by", "skipped"} {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("no %s in the document", key)
		}
	}
}

// TestDocumentedAction: the workflow of the document is the base branch's, has no rights to write, checks nothing of
// the pull request out and has no expression in a shell's text. `make lint` has actionlint read it.
func TestDocumentedAction(t *testing.T) {
	conform.Rule(t, "12-evidence action", `ten lines in the docs`)
	_, all := blocks(t)
	var w struct {
		Name        string
		On          string
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct {
				Uses string
				With map[string]any
				Run  string
				Env  map[string]string
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(all[1]))
	d.KnownFields(true)
	if err := d.Decode(&w); err != nil {
		t.Fatal(err)
	}
	if w.On != "pull_request_target" || len(w.Permissions) != 1 || w.Permissions["contents"] != "read" || len(w.Jobs) != 1 {
		t.Errorf("%+v", w)
	}
	verified := false
	for _, s := range w.Jobs["gates"].Steps {
		if strings.Contains(s.Run, "${{") || s.With["ref"] != nil || s.Uses != "" && s.With["fetch-depth"] != 0 {
			t.Errorf("%+v", s)
		}
		verified = verified || strings.HasPrefix(s.Run, `sluice verify "HEAD..$PR" `) && strings.HasSuffix(s.Run, "--policy-from HEAD") && s.Env["PR"] != ""
	}
	if !verified || strings.Count(all[1], "\n") > 12 {
		t.Errorf("it verifies: %v, in %d lines", verified, strings.Count(all[1], "\n"))
	}
}
