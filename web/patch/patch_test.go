package patch

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/internal/review"
	"sluice/internal/text/hostile"
	"sluice/tools/conform"
	"sluice/web/visible"
)

var update = flag.Bool("update", false, "write the goldens")

const small = `diff --git a/cmd/x.go b/cmd/x.go
index 1111111..2222222 100644
--- a/cmd/x.go
+++ b/cmd/x.go
@@ -3,4 +3,5 @@ package main
 import (
-	words := usage(t.Here)
+	said := usageWords(t.Here.Usage)
+	"maps"
 	"fmt"` + "\r" + `
 )
@@ -20,1 +21,1 @@ func f() {
-old` + "\u202e" + `
+<script>alert(1)</script>
\ No newline at end of file
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git "a/t\303\244b\t<b>" "b/t\303\244b\t<b>"
deleted file mode 100644
index 3333333..0000000
--- "a/t\303\244b\t<b>"
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/new b/new
new file mode 120000
index 0000000..4444444
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+../target
\ No newline at end of file
diff --git a/old name b/new name
similarity index 90%
rename from old name
rename to new name
index 5555555..6666666 100644
--- a/old name	
+++ b/new name	
@@ -1,2 +1,2 @@
 a
-b
+c
diff --git a/x.bin b/x.bin
index 7777777..8888888 100644
Binary files a/x.bin and b/x.bin differ
diff --git a/huge b/huge
new file mode 100644
huge: 12345678 bytes, not shown
`

func TestPageGolden(t *testing.T) {
	var b bytes.Buffer
	sum, err := Page(&b, strings.NewReader(small), Options{Query: "round=2"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Summary{Files: 7, Shown: 7, Added: 5, Removed: 4}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	whole(t, b.Bytes())
	golden := filepath.Join("testdata", "page.html")
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("not as %s (%v); -update writes it:\n%s", golden, err, b.Bytes())
	}
}

// whole reports HTML that is not balanced, or that has an address or an attribute which is not ours.
func whole(t *testing.T, html []byte) {
	t.Helper()
	if !utf8.Valid(html) {
		t.Fatalf("not UTF-8: %q", html)
	}
	known := map[string]string{
		"id": `^f\d+([LR]\d+)?x?$`, "aria-label": `^`, "dir": `^ltr$`, "scope": `^col$`, "open": `^open$`,
		"class": `^[a-z]+$`,
		"href":  `^\?(round=2&)?(at|line|open|list)=[fLR0-9]+(&from=\d+)?#f\d+([LR]\d+)?$`,
	}
	d := xml.NewDecoder(io.MultiReader(strings.NewReader("<all>"), bytes.NewReader(
		bytes.ReplaceAll(html, []byte("<details class=\"file\" open "), []byte("<details class=\"file\" open=\"open\" "))),
		strings.NewReader("</all>")))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not balanced: %v:\n%.3000s", err, html)
		}
		el, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch el.Name.Local {
		case "all", "details", "summary", "span", "b", "i", "p", "a", "div", "table", "thead", "tbody",
			"tr", "th", "td", "pre":
		default:
			t.Errorf("an element %s", el.Name.Local)
		}
		for _, a := range el.Attr {
			if want, ok := known[a.Name.Local]; !ok || !regexp.MustCompile(want).MatchString(a.Value) {
				t.Errorf("an attribute %s=%q", a.Name.Local, a.Value)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	conform.Rule(t, "11-page rows", "Row ids are short (`f3R200`)")
	for s, want := range map[string]ID{"f3R200": {3, false, 200}, "f3L12": {3, true, 12}, "f1": {1, false, 0}} {
		if got, ok := ParseID(s); !ok || got != want || got.String() != s {
			t.Errorf("%s: %+v %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "f", "f0", "f01", "f1R0", "f1R", "f1R-1", "f1R+1", "g1", "f1X2", "f1R1x", "R1",
		"f99999999999999999999", "f1R99999999999999999999"} {
		if id, ok := ParseID(s); ok {
			t.Errorf("%q: %+v", s, id)
		}
	}
}

func TestFind(t *testing.T) {
	for id, want := range map[string]review.Line{
		"f1R4": {Text: "+\tsaid := usageWords(t.Here.Usage)", File: "cmd/x.go", Kind: '+', New: 4, Old: 4},
		"f1L4": {Text: "-\twords := usage(t.Here)", File: "cmd/x.go", Kind: '-', New: 3, Old: 4},
		"f1R6": {Text: " \t\"fmt\"", File: "cmd/x.go", Kind: ' ', New: 6, Old: 5},
		"f3L1": {Text: "-gone", File: "täb\t<b>", Kind: '-', New: 0, Old: 1},
		"f5R1": {Text: " a", File: "new name", Kind: ' ', New: 1, Old: 1},
	} {
		at, _ := ParseID(id)
		if got, err := Find(strings.NewReader(small), at); err != nil || got.Line != want {
			t.Errorf("%s: %+v, want %+v (%v)", id, got, want, err)
		}
	}
	for _, id := range []ID{{1, false, 99}, {1, true, 6}, {9, false, 1}, {2, false, 1}, {0, false, 0}} {
		if got, err := Find(strings.NewReader(small), id); !errors.Is(err, ErrNone) {
			t.Errorf("%v: %+v (%v)", id, got, err)
		}
	}
}

// added returns a diff of new files, each of a number of lines of a number of bytes.
func added(files, count, size int) *bytes.Buffer {
	var b bytes.Buffer
	line := "+" + strings.Repeat("x", size-2) + "\n"
	for i := range files {
		fmt.Fprintf(&b, "diff --git a/%d b/%d\nnew file mode 100644\nindex 0000000..1\n", i, i)
		fmt.Fprintf(&b, "--- /dev/null\n+++ b/%d\n@@ -0,0 +1,%d @@\n", i, count)
		b.WriteString(strings.Repeat(line, count))
	}
	return &b
}

func TestPageLimits(t *testing.T) {
	conform.Rule(t, "11-page diff", "At most 100 files or 500 kB stand in the page; further files are …")
	for _, c := range []struct {
		name               string
		files, count, size int
		open               int
		want               Summary
		most               int
	}{
		{"many", 250, 2, 20, 0, Summary{Files: 250, Shown: 100, Listed: 150, Added: 500}, 200_000},
		{"large", 20, 400, 60, 0, Summary{Files: 20, Shown: 6, Listed: 14, Added: 8000}, 510_000},
		{"large, one open", 20, 400, 60, 19, Summary{Files: 20, Shown: 7, Listed: 13, Added: 8000}, 600_000},
		{"huge", 1, 20_000, 60, 0, Summary{Files: 1, Listed: 1, Added: 20_000}, 1000},
		{"huge and open", 1, 20_000, 60, 1, Summary{Files: 1, Shown: 1, Added: 20_000}, 510_000},
		{"a flood of files", 5000, 1, 10, 0, Summary{Files: 5000, Shown: 100, Listed: 1000, Added: 5000}, 500_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			sum, err := Page(&b, added(c.files, c.count, c.size), Options{Open: c.open})
			if err != nil {
				t.Fatal(err)
			}
			whole(t, b.Bytes())
			if sum != c.want || b.Len() > c.most {
				t.Errorf("%+v in %d bytes, want %+v in %d", sum, b.Len(), c.want, c.most)
			}
			if left := sum.Files - sum.Shown - sum.Listed; left > 0 &&
				!strings.Contains(b.String(), fmt.Sprintf(`href="?list=1101#f1101" class="list">%d more files</a>`, left)) {
				t.Errorf("%d files are not named, and it does not say so:\n%s", left, b.String()[b.Len()-500:])
			}
		})
	}
	var b bytes.Buffer
	if sum, err := List(&b, added(5000, 1, 10), 4500, Options{}); err != nil || sum.Listed != 501 ||
		!strings.Contains(b.String(), `"?open=f4500#f4500"`) || strings.Contains(b.String(), "f4499") {
		t.Errorf("%+v %v: %.300s", sum, err, b.String())
	}
}

// TestFileInParts: all rows of a large file are in its parts, once.
func TestFileInParts(t *testing.T) {
	diff := added(3, 9000, 60).Bytes()
	seen, from, parts := 0, 0, 0
	for {
		var b bytes.Buffer
		c, err := File(&b, bytes.NewReader(diff), 2, from, Options{})
		if err != nil || c.Added != 9000 || b.Len() > MaxBytes+2000 {
			t.Fatalf("%d: %+v %v, %d bytes", from, c, err, b.Len())
		}
		whole(t, b.Bytes())
		for _, m := range regexp.MustCompile(`<tr class="a" id="f2R(\d+)"`).FindAllStringSubmatch(b.String(), -1) {
			if seen++; m[1] != fmt.Sprint(seen) {
				t.Fatalf("line %s comes after %d", m[1], seen-1)
			}
		}
		parts++
		after := regexp.MustCompile(`\?open=f2&amp;from=(\d+)#f2" class="open">(\d+) rows after these`)
		next := after.FindStringSubmatch(b.String())
		if next == nil {
			break
		}
		fmt.Sscan(next[1], &from)
		if want := fmt.Sprint(9001 - from); next[2] != want {
			t.Errorf("%s rows left after %d", next[2], from)
		}
	}
	if seen != 9000 || parts < 3 {
		t.Errorf("%d lines in %d parts", seen, parts)
	}
	if _, err := File(io.Discard, bytes.NewReader(diff), 4, 0, Options{}); !errors.Is(err, ErrNone) {
		t.Errorf("file 4 of 3: %v", err)
	}
}

func TestLongLine(t *testing.T) {
	const size = 300_000
	diff := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + strings.Repeat("é", size/2) + "\n"
	var b bytes.Buffer
	if _, err := Page(&b, strings.NewReader(diff), Options{}); err != nil {
		t.Fatal(err)
	}
	want := `<a href="?line=f1R1&amp;from=2000#f1R1" class="more">… 298000 of 300000 bytes more</a>`
	if !strings.Contains(b.String(), want) {
		t.Errorf("%s", b.String())
	}
	got, from := strings.Repeat("é", 1000), int64(2000)
	for {
		b.Reset()
		if err := Rest(&b, strings.NewReader(diff), ID{1, false, 1}, from, Options{}); err != nil {
			t.Fatal(err)
		}
		whole(t, b.Bytes())
		_, text, _ := strings.Cut(b.String(), "<pre>")
		text, _, _ = strings.Cut(text, "</pre>")
		got += text
		m := regexp.MustCompile(`from=(\d+)#f1R1" class="more">after`).FindStringSubmatch(b.String())
		if m == nil {
			break
		}
		fmt.Sscan(m[1], &from)
	}
	if got != strings.Repeat("é", size/2) {
		t.Errorf("the parts have %d bytes, want %d", len(got), size)
	}
}

// TestFileFrom: a part begins where it is asked to, with the head of the hunk it is in.
func TestFileFrom(t *testing.T) {
	for id, want := range map[string]string{
		"f1R6":  `@@ -3,4 +3,5 @@ package main</td></tr>|class="x" id="f1R6">`,
		"f1L20": `@@ -20,1 +21,1 @@ func f() {</td></tr>|class="d" id="f1L20">`,
	} {
		at, _ := ParseID(id)
		found, err := Find(strings.NewReader(small), at)
		if err != nil {
			t.Fatal(err)
		}
		first, second, _ := strings.Cut(want, "|")
		for _, row := range []int{found.Row, found.Row - 1} {
			var b bytes.Buffer
			if _, err := Page(&b, strings.NewReader(small), Options{Open: 1, From: row}); err != nil {
				t.Fatal(err)
			}
			rows := strings.Split(b.String(), "<tr ")
			isHead := id == "f1L20" && row < found.Row
			if !strings.Contains(rows[1], first) || !strings.HasPrefix(rows[2], second) && row == found.Row ||
				isHead && !strings.HasPrefix(rows[2], second) {
				t.Errorf("%s, row %d:\n%s\n%s", id, row, rows[1], rows[2])
			}
			if !strings.Contains(b.String(), fmt.Sprintf("%d rows before these", row)) {
				t.Errorf("row %d: it does not say what is before", row)
			}
		}
	}
}

// TestRuns: lines keep their order, and those of a run too long to compare have no marks.
func TestRuns(t *testing.T) {
	write := func(hunk string) string {
		var b bytes.Buffer
		if _, err := Page(&b, strings.NewReader("diff --git a/x b/x\n--- a/x\n+++ b/x\n"+hunk), Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := regexp.MustCompile(`id="(f1[LR]\d)"`).FindAllStringSubmatch(write("@@ -1,2 +1,2 @@\n-a\n+b\n-c\n+d\n"), -1)
	if want := "[[id=\"f1L1\" f1L1] [id=\"f1R1\" f1R1] [id=\"f1L2\" f1L2] [id=\"f1R2\" f1R2]]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	long := strings.Repeat("-return the value of this one line\n", 2500)
	hunk := fmt.Sprintf("@@ -1,%d +1,1 @@\n", 2500) + long + "+return the value of that one line\n"
	var b bytes.Buffer
	if _, err := File(&b, strings.NewReader("diff --git a/x b/x\n"+hunk), 1, 0, Options{}); err != nil ||
		!strings.Contains(b.String(), `id="f1L2500"`) || strings.Contains(b.String(), "<td><b>") {
		t.Error("the last lines are missing, or wrong", err)
	}
	if strings.Contains(b.String(), "<b>that</b>") {
		t.Error("a line is compared with one of a run that was cut")
	}
}

func TestHooks(t *testing.T) {
	var b bytes.Buffer
	asked := 0
	_, err := File(&b, strings.NewReader(small), 1, 0, Options{
		Colour: func(c *Change) (old, now Colours) {
			asked++
			if c.Path != "cmd/x.go" || c.OldBlob != "1111111" || c.Blob != "2222222" {
				t.Errorf("colours of %+v", c)
			}
			return nil, func(line int) []visible.Span {
				if line == 3 {
					return []visible.Span{{From: 0, To: 6, Class: "k"}}
				}
				return nil
			}
		},
		Below: func(dst []byte, c *Change, at ID) []byte {
			if at == (ID{1, false, 4}) {
				dst = append(dst, "<tr><td></td><td></td><td>a comment</td></tr>"...)
			}
			return dst
		},
	})
	if err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	whole(t, b.Bytes())
	for _, want := range []string{`<i class="k">import</i> (`,
		"</tr>\n<tr><td></td><td></td><td>a comment</td></tr><tr class=\"a\" id=\"f1R5\">"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(small), 1, 0, 1)
	for _, s := range hostile.Texts() {
		f.Add([]byte("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+"+s+"\n+"+s), 1, 1, 1)
		f.Add([]byte(s), 1, 0, 0)
	}
	f.Fuzz(func(t *testing.T, diff []byte, n, from, line int) {
		var b bytes.Buffer
		if _, err := Page(&b, bytes.NewReader(diff), Options{}); err != nil {
			t.Fatal(err)
		}
		whole(t, b.Bytes())
		b.Reset()
		if _, err := File(&b, bytes.NewReader(diff), n, from, Options{}); err != nil && !errors.Is(err, ErrNone) {
			t.Fatal(err)
		}
		whole(t, b.Bytes())
		b.Reset()
		id := ID{n, from%2 == 0, line}
		if err := Rest(&b, bytes.NewReader(diff), id, int64(from), Options{}); err != nil && !errors.Is(err, ErrNone) {
			t.Fatal(err)
		}
		whole(t, b.Bytes())
		if _, err := Find(bytes.NewReader(diff), id); err != nil && !errors.Is(err, ErrNone) {
			t.Fatal(err)
		}
	})
}
