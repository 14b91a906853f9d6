package graph

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/specs"
)

var update = flag.Bool("update", false, "write the pictures anew")

// someStates are some states of a run, for its pictures.
func someStates() map[string]string {
	return map[string]string{"X-1": "passed", "XG-1-2": "window", "X-2": "running", "X-0": "passed", "G-0": "human", "mend": "skipped"}
}

// TestPictures: the pictures of the document's example, and of a spec with every key.
func TestPictures(t *testing.T) {
	for _, name := range []string{"phase-4-search-index", "everything", "list"} {
		src, err := os.ReadFile("../testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		spec, faults := specs.Load("", src)
		if spec == nil {
			t.Fatal(faults)
		}
		for ending, got := range map[string]string{
			"txt":     Text(spec, someStates(), Options{}),
			"outline": Outline(spec, someStates()),
			"mmd":     Mermaid(spec, someStates(), Options{}),
			"dot":     Dot(spec, someStates(), Options{}),
			"svg":     string(SVG(spec, someStates(), Options{})),
			"strip":   string(Strip(spec, someStates(), Options{Fragment: true})),
		} {
			file := "testdata/" + name + "." + ending
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s:\n%s", file, got)
			}
		}
	}
}

// goodSpecs are the specs that we ship, by their files.
func goodSpecs(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, glob := range []string{"../testdata/*.yaml", "../../examples/*/.workflow/specs/*.yaml", "../templates/*/specs/*.yaml"} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = src
		}
	}
	return out
}

// TestPicturesHoldAll: every picture has every step and gate, even with names made to break out of
// labels.
func TestPicturesHoldAll(t *testing.T) {
	const bad = "</text>\"]; <b>&#x; \"\\\x1b[31m\u202e\x00"
	for file, src := range goodSpecs(t) {
		spec, faults := specs.Load(file, src)
		if spec == nil {
			t.Fatal(faults)
		}
		for _, s := range spec.Steps {
			s.Name = bad
		}
		svg := string(SVG(spec, nil, Options{}))
		for kind, picture := range map[string]string{"text": Text(spec, nil, Options{}), "mermaid": Mermaid(spec, nil, Options{}), "dot": Dot(spec, nil, Options{}), "svg": svg} {
			if strings.ContainsAny(picture, "\x1b\u202e\x00") {
				t.Errorf("%s: the %s picture holds control characters", file, kind)
			}
			for _, s := range spec.Steps {
				if !strings.Contains(picture, s.ID) {
					t.Errorf("%s: the %s picture has no %s", file, kind, s.ID)
				}
			}
			for _, g := range spec.Gates {
				if !strings.Contains(picture, g.ID) {
					t.Errorf("%s: the %s picture has no %s", file, kind, g.ID)
				}
			}
		}
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: the SVG is no XML: %v", file, err)
			}
		}
		if dot, err := exec.LookPath("dot"); err == nil {
			cmd := exec.Command(dot, "-Tsvg")
			cmd.Stdin = strings.NewReader(Dot(spec, nil, Options{}))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: dot: %v: %s", file, err, out)
			}
		}
	}
}

// TestProgress: the pictures for a terminal and for other tools show notes and counts too.
func TestProgress(t *testing.T) {
	spec := phase4(t)
	o := Options{Notes: map[string]string{"X-2": "attempt 2 · 33m"}, Taken: map[string]map[string]int{"XG-1-2": {"fail": 1}}}
	for kind, got := range map[string]string{"text": Text(spec, someStates(), o), "mermaid": Mermaid(spec, someStates(), o),
		"dot": Dot(spec, someStates(), o)} {
		for _, want := range []string{"running · attempt 2 · 33m", "fail 1/2"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %q:\n%s", kind, want, got)
			}
		}
	}
}

// The states in which a round waits for a person have plain words.
func TestWords(t *testing.T) {
	for state, want := range map[string]string{engine.OnHuman: "asks you", engine.OnNotice: "notifies you",
		engine.OnWindow: "open to a veto", engine.Approved: engine.Approved} {
		if got := Words(state); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
