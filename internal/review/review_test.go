package review

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/internal/fault"
	"sluice/internal/findings"
)

const patch = `diff --git a/a.go b/a.go
index 1..2 100644
--- a/a.go
+++ b/a.go
@@ -10,4 +10,4 @@ func a()
 one
-two
+TWO
 three
 
@@ -40,2 +40,3 @@
--- a/not a head
+diff --git a/x b/x
++++ b/nor this
 end
\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-x
-y
`

// written puts a comment below the line of the sheet that is given.
func written(t *testing.T, s *Sheet, below map[string]string) []byte {
	t.Helper()
	var out strings.Builder
	for l := range strings.Lines(string(s.Text(""))) {
		out.WriteString(l)
		if c, ok := below[strings.TrimSuffix(l, "\n")]; ok {
			out.WriteString(c + "\n")
			delete(below, strings.TrimSuffix(l, "\n"))
		}
	}
	if len(below) > 0 {
		t.Fatalf("no such lines: %q", below)
	}
	return []byte(out.String())
}

func TestComments(t *testing.T) {
	s := New(About{Title: "G, round 1 of r-1", Outcome: "fail"}, []byte(patch))
	edited := written(t, s, map[string]string{
		"diff --git a/a.go b/a.go":    "> of the file",
		"@@ -10,4 +10,4 @@ func a()":  "> of the hunk",
		"+TWO":                        "> added\n> and on\n\n>",
		"-two":                        "> removed",
		" three":                      "> beside\n\n> another",
		"--- a/not a head":            "> a removed line that looks like a head",
		"+diff --git a/x b/x":         "> looks like a head too",
		`\ No newline at end of file`: "> the end",
		"-y":                          "> deleted",
		"# End of the changes.":       "",
	})
	for name, raw := range map[string]string{
		"as written":   "Not yet.\n\n# 42 stays open\n" + string(edited),
		"CRLF, BOM":    "\uFEFF" + strings.ReplaceAll("Not yet.\n\n# 42 stays open\n"+string(edited), "\n", "\r\n"),
		"no form feed": strings.Replace("Not yet.\n\n# 42 stays open\n"+string(edited), "\n\f\n", "\n\n", 1),
		"no trailing space": strings.ReplaceAll("Not yet.  \n\n# 42 stays open\n"+string(edited),
			" \n", "\n"),
	} {
		words, list, err := s.Read([]byte(raw))
		if err != nil || words != "Not yet.\n\n# 42 stays open" {
			t.Fatalf("%s: %q, %v", name, words, err)
		}
		another := "12"
		if name == "no trailing space" { // the empty line between the two could be that of the changes
			another = "13"
		}
		var got []string
		for _, f := range list {
			got = append(got, f.Place()+" "+f.Message)
		}
		want := []string{
			"a.go of the file", "a.go:10 of the hunk", "a.go:10 (on the removed line 11) removed",
			"a.go:11 added\nand on", "a.go:12 beside", "a.go:" + another + " another",
			"a.go:39 (on the removed line 40) a removed line that looks like a head",
			"a.go:40 looks like a head too", "a.go:42 the end", "gone.txt (on the removed line 2) deleted",
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestNothingWritten(t *testing.T) {
	s := New(About{Outcome: "fail"}, []byte(patch))
	for name, raw := range map[string]string{
		"unchanged": string(s.Text("")), "empty": "", "blank": "\n \n",
		"empty comments": strings.Replace(string(s.Text("")), "+TWO\n", "+TWO\n>\n>  \n", 1),
	} {
		if words, list, err := s.Read([]byte(raw)); !errors.Is(err, ErrNothing) {
			t.Errorf("%s: %q %v %v", name, words, list, err)
		}
	}
	if words, list, err := s.Read(s.Text("only words")); words != "only words" || list != nil || err != nil {
		t.Errorf("%q %v %v", words, list, err)
	}
}

func TestWhatCannotBePlaced(t *testing.T) {
	s := New(About{Outcome: "fail"}, []byte(patch))
	text := string(s.Text("words"))
	edit := func(old, now string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(text, old, now, 1)
	}
	for name, c := range map[string]struct{ raw, what, advice string }{
		"a changed line":         {edit("+TWO\n", "+TWO!\n"), "line 21 of the file is neither", "+TWO"},
		"a removed line":         {edit("+TWO\n", ""), "line 21 of the file is neither", "restore the line"},
		"a comment unmarked":     {edit("+TWO\n", "+TWO\nwhy?\n"), "neither a comment nor the next line of the changes: why?", `">"`},
		"swapped":                {edit("-two\n+TWO\n", "+TWO\n-two\n"), "neither", "-two"},
		"the end is gone":        {text[:strings.Index(text, "-y\n")], `line "-y" is missing`, "restore"},
		"the first line changed": {edit("diff --git a/a.go", "diff --git a/b.go"), `line "diff --git a/a.go b/a.go" is missing`, "restore"},
		"words at the end":       {text + "so no\n", "is not a comment: so no", "overall words go to the top"},
		"UTF-16":                 {"\xff\xfew\x00", "not UTF-8", "UTF-8"},
		"NUL":                    {edit("words", "wo\x00rds"), "not UTF-8", "UTF-8"},
		"binary":                 {"\x7fELF\x80\x81", "not UTF-8", "UTF-8"},
		"a long comment":         {edit("+TWO\n", "+TWO\n> "+strings.Repeat("x", findings.MaxText)+"\n"), "the comment on a.go:11 has more than", "shorten"},
		"many comments":          {edit("+TWO\n", "+TWO\n"+strings.Repeat("> x\n\n", findings.Max+1)), "there are 201 comments", "most important"},
	} {
		words, list, err := s.Read([]byte(c.raw))
		if err == nil {
			t.Errorf("%s: read as %q %v", name, words, list)
			continue
		}
		what, advice := fault.Split(err)
		if !strings.Contains(what, c.what) || !strings.Contains(advice, c.advice) {
			t.Errorf("%s: %s → %s", name, what, advice)
		}
	}
}

// TestSheetIsSafe: what an agent wrote neither acts on a terminal nor on an editor, nor reads as
// another line.
func TestSheetIsSafe(t *testing.T) {
	hostile := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,6 @@\n+\x1b]0;x\x07one\r-two\u2028> three\n+a\u202eb\xff\n+> quoted\n+vim: set exrc:\n+\f\n+Local Variables:\n"
	s := New(About{Outcome: "fail"}, []byte(hostile))
	text := string(s.Text(""))
	for _, bad := range []string{"\x1b", "\x07", "\r", "\u202e", "\xff"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the sheet", bad)
		}
	}
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range all {
		if strings.HasPrefix(l, Marker) {
			t.Errorf("line %d is a comment already: %s", i, l)
		}
		if (i < 12 || i >= len(all)-12) && strings.Contains(l, "vim:") {
			t.Errorf("line %d sets up an editor: %s", i, l)
		}
	}
	if page := text[strings.LastIndex(text, "\n\f")+1:]; !strings.HasPrefix(page, "\f\n#") || len(page) > 3000 ||
		strings.Contains(page, "Local Variables:") {
		t.Errorf("the last page, which sets up an editor: %q", page)
	}
	if want := "+<U+001B>]0;x<U+0007>one␍-two<U+2028>> three\n+a<U+202E>b\uFFFD\n"; !strings.Contains(text, want) {
		t.Errorf("%q lacks %q", text, want)
	}
	if _, list, err := s.Read(written(t, s, map[string]string{"+> quoted": "> no"})); err != nil || len(list) != 1 || list[0].Line != 3 {
		t.Errorf("%v %v", list, err)
	}
}

// TestVisible: a changed line is shown with the characters that nobody sees: without them it reads as another one.
func TestVisible(t *testing.T) {
	for _, c := range []string{"\u00ad", "\u034f", "\u200b", "\u200d", "\u00a0", "\u3000", "\ufe00", "\ufeff",
		"\ue000", "\u0378"} {
		if got, want := Visible("+\"adm"+c+"in\"\n"), fmt.Sprintf("+\"adm<%U>in\"", []rune(c)[0]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for head, want := range map[string]string{
		"diff --git a/a name b/a name\nold mode 100644\nnew mode 100755\n":                                      "a name",
		"diff --git a/x b/x b/x b/x\nnew file mode 100644\n":                                                    "x b/x",
		"diff --git \"a/t\\303\\244\\\"\\\\\\t\" \"b/t\\303\\244\\\"\\\\\\t\"\nnew file mode 100644\n":          "tä\"\\\t",
		"diff --git \"a/\\377\" \"b/\\377\"\n--- /dev/null\n+++ \"b/\\377\"\n":                                  "\xff",
		"diff --git a/old b/other name\nsimilarity index 90%\nrename from old\nrename to other name\n":          "other name",
		"diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n":                        "new",
		"diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n":                                                    "a b",
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n":                       "gone",
		"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/m b/m\nnew file mode 100644\n": "m",
		"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -999999999999999999999 +1 @@\n+y\n":                           "a",
		"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2\n":                                                  "a",
	} {
		lines := Lines([]byte(head))
		if got := lines[len(lines)-1].File; got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}

func TestHugePatch(t *testing.T) {
	var b strings.Builder
	n := 100_000
	fmt.Fprintf(&b, "diff --git a/big b/big\n--- /dev/null\n+++ b/big\n@@ -0,0 +1,%d @@\n", n)
	for i := range n {
		fmt.Fprintf(&b, "+%d\n", i)
	}
	s := New(About{Outcome: "fail", Cut: true}, []byte(b.String()))
	raw := written(t, s, map[string]string{"+99999": "> the last"})
	if _, list, err := s.Read(raw); err != nil || len(list) != 1 || list[0].Line != n {
		t.Errorf("%v %v", list, err)
	}
}

func TestSince(t *testing.T) {
	later := Lines([]byte("diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -10 +10 @@\n-x\n+y\n@@ -50,0 +51,2 @@\n+n\n+m\n" +
		"diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n"))
	for place, want := range map[findings.Finding]string{
		{File: "a.go", Line: 10}:  Changed,
		{File: "a.go", Line: 13}:  Changed,
		{File: "a.go", Line: 14}:  Unchanged,
		{File: "a.go", Line: 6}:   Unchanged,
		{File: "a.go", Line: 50}:  Changed,
		{File: "a.go", Line: 54}:  Unchanged,
		{File: "a.go"}:            Changed,
		{File: "mode"}:            Changed,
		{File: "mode", Line: 1}:   Unchanged,
		{File: "b.go", Line: 10}:  Unchanged,
		{Line: 10}:                "",
		{Message: "of no place"}:  "",
		{File: "a.go", Line: 900}: Unchanged,
	} {
		if got := Since(place, later); got != want {
			t.Errorf("%+v: %q, want %q", place, got, want)
		}
	}
}

func FuzzSheet(f *testing.F) {
	f.Add([]byte(patch), []byte("> x\n"))
	f.Add([]byte("@@ -1 +1 @@\n\\\n> \r\n"), []byte("\xff"))
	f.Fuzz(func(t *testing.T, patch, edit []byte) {
		s := New(About{Outcome: "fail"}, patch)
		if len(s.lines) == 0 {
			return // nobody is asked about no changes
		}
		if words, list, err := s.Read(s.Text("")); !errors.Is(err, ErrNothing) {
			t.Fatalf("unchanged: %q %v %v", words, list, err)
		}
		for _, l := range s.lines {
			if strings.ContainsAny(l.Text, "\n\x1b") || strings.HasPrefix(l.Text, Marker) {
				t.Fatalf("%q", l.Text)
			}
		}
		_, list, err := s.Read(append(s.Text("words"), edit...))
		if err == nil {
			if _, err := findings.Encode(list); err != nil {
				t.Fatal(err)
			}
		}
	})
}
