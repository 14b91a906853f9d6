package importer

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// testRefs reads $node.output.
func testRefs(s string) (string, int) {
	m := regexp.MustCompile(`^\$([a-z]+)\.output`).FindStringSubmatch(s)
	if m == nil {
		return "", 0
	}
	return strings.ToUpper(m[1]) + "_OUTPUT", len(m[0])
}

// TestFit: each value from outside is in double quotes, or the script is not run.
func TestFit(t *testing.T) {
	conform.Rule(t, "12-import quoted", "in quotes, or not run")
	t.Parallel()
	outside := []string{"ARGUMENTS"}
	for name, c := range map[string]struct{ in, out, why string }{
		"bare":                {`gh view $ARGUMENTS`, `gh view "$ARGUMENTS"`, ""},
		"in double quotes":    {`echo "a $ARGUMENTS b"`, `echo "a $ARGUMENTS b"`, ""},
		"in braces":           {`echo ${ARGUMENTS:-none}`, `echo "${ARGUMENTS:-none}"`, ""},
		"its length":          {`echo ${#ARGUMENTS}`, `echo ${#ARGUMENTS}`, ""},
		"of a node":           {`x=$scan.output`, `x="${SCAN_OUTPUT}"`, ""},
		"of a node, quoted":   {`x="$scan.output"`, `x="${SCAN_OUTPUT}"`, ""},
		"in a substitution":   {`x=$(grep $ARGUMENTS f)`, `x=$(grep "$ARGUMENTS" f)`, ""},
		"in two":              {`x="$(grep $ARGUMENTS "$(cat $ARGUMENTS)")"`, `x="$(grep "$ARGUMENTS" "$(cat "$ARGUMENTS")")"`, ""},
		"a comment":           {"a # $ARGUMENTS it's\nb", "a # $ARGUMENTS it's\nb", ""},
		"a literal":           {`echo '$ARGUMENTS'`, `echo '$ARGUMENTS'`, ""},
		"escaped":             {`echo \$ARGUMENTS`, `echo \$ARGUMENTS`, ""},
		"a document":          {"cat <<EOF\n$ARGUMENTS \"x\n$scan.output\nEOF\necho $ARGUMENTS\n", "cat <<EOF\n$ARGUMENTS \"x\n${SCAN_OUTPUT}\nEOF\necho \"$ARGUMENTS\"\n", ""},
		"a plain document":    {"cat <<'EOF'\n$ARGUMENTS\nEOF\n", "cat <<'EOF'\n$ARGUMENTS\nEOF\n", ""},
		"another variable":    {`echo $HOME`, `echo $HOME`, ""},
		"a longer name":       {`echo $ARGUMENTS_X`, `echo $ARGUMENTS_X`, ""},
		"eval":                {`eval $ARGUMENTS`, "", "as code"},
		"a shell's text":      {`sh -c "echo $ARGUMENTS"`, "", "as code"},
		"a literal text":      {`echo $ARGUMENTS; sh -c 'echo "$1"' _ x`, `echo "$ARGUMENTS"; sh -c 'echo "$1"' _ x`, ""},
		"python":              {`python3 -c "print('$ARGUMENTS')"`, "", "as code"},
		"awk":                 {`awk "/$ARGUMENTS/"`, "", "as code"},
		"eval of another":     {`x=$ARGUMENTS; eval "$x"`, "", "as code"},
		"code without it":     {`python3 -c "print($x)"`, `python3 -c "print($x)"`, ""},
		"in single quotes":    {`jq '.a == "$scan.output"'`, "", "single quotes"},
		"arithmetic":          {`echo $((ARGUMENTS + 1))`, "", "arithmetic"},
		"backquotes":          {"x=`grep $ARGUMENTS f`", "", "backquotes"},
		"a verbatim text":     {"cat <<'EOF'\n$scan.output\nEOF\n", "", "here-document"},
		"a long substitution": {"cat <<EOF\n$(a\n$ARGUMENTS)\nEOF\n", "", "goes on in its next line"},
		"a case after one":    {"cat <<EOF\n$(a\nb)\nEOF\ncase x in a) echo $ARGUMENTS;; esac\n", "", "goes on in its next line"},
		"quotes after one":    {"cat <<EOF\n$(a '\n')\nEOF\necho $ARGUMENTS\n", "", "goes on in its next line"},
		"one without a value": {"cat <<EOF\n$(a\nb)\nEOF\n", "cat <<EOF\n$(a\nb)\nEOF\n", ""},
		"a case in brackets":  {"x=$(case $y in a) echo;; esac; echo $ARGUMENTS)", "", "case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fit(c.in, outside, testRefs)
			switch {
			case c.why == "" && (got.why != "" || got.text != c.out):
				t.Errorf("%q became %q (%s), want %q", c.in, got.text, got.why, c.out)
			case c.why != "" && !strings.Contains(got.why, c.why):
				t.Errorf("%q became %q (%s), want a refusal: %s", c.in, got.text, got.why, c.why)
			}
		})
	}
}

// TestScriptsParse: what the shell took before, it takes after.
func TestScriptsParse(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs: bash (apt-get install bash)")
	}
	for _, f := range originalScripts(t) {
		if out, err := exec.Command(bash, "-n", f).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", f, out)
		}
	}
}

func originalScripts(t *testing.T) (out []string) {
	t.Helper()
	for format, file := range originals() {
		p, err := Read(file, format)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := p.Write(dir); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(dir, ".workflow/scripts/*/*.sh"))
		out = append(out, found...)
	}
	return out
}
