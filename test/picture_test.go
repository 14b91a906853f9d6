//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sluice/tools/picture"
)

// The window of the README's picture.
const (
	pictureColumns = 96
	pictureRows    = 24
)

// moments of the demo that the picture shows: what comes, what is typed then, and how long each stays.
var moments = []struct {
	name, comes, types string
	hold               time.Duration
}{
	{"review", `goes on in [0-9]+s unless you veto`, "", 4 * time.Second},
	{"asks", `\? \S+ .*asks you`, "Enter", 3 * time.Second},
	{"page", `^p pass · f fail · c comment · t tail`, "p", 4 * time.Second},
	{"question", `^Enter passes it`, "Enter", 3 * time.Second},
	{"end", `^rc=0`, "", 5 * time.Second},
}

// TestThePictureIsTrue plays the demo in a terminal, as the README's picture shows it: each of its screens comes, and the
// picture is drawn from them.
func TestThePictureIsTrue(t *testing.T) {
	w := newWorld(t, true)
	win := w.inTerminal(pictureColumns, pictureRows, "unset NO_COLOR; "+filepath.Join(binDir(t), "sluice")+" demo")
	frames := []picture.Frame{{Screen: "\x1b[32m$\x1b[0m \x1b[1msluice demo\x1b[0m", Hold: 3 * time.Second / 2}}
	for _, m := range moments {
		win.sees(m.comes)
		if m.types != "" {
			win.looks()
		}
		screen := lasting(win.tmux("capture-pane", "-e", "-p"))
		file := filepath.Join("testdata", "picture", m.name+".txt")
		if *redraw {
			if err := os.WriteFile(file, []byte(screen), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := plainly(screen), plainly(string(kept)); got != want {
			t.Errorf("%s: the screen is\n%s\nand the picture shows\n%s", m.name, got, want)
		}
		frames = append(frames, picture.Frame{Screen: string(kept), Hold: m.hold})
		if m.types != "" {
			win.types(m.types)
		}
	}
	svg := picture.SVG("sluice demo: a review fails, the work goes back, a person passes it", pictureColumns, pictureRows, frames)
	drawn := filepath.Join("..", "docs", "demo.svg")
	if *redraw {
		if err := os.WriteFile(drawn, svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(drawn); err != nil || string(kept) != string(svg) {
		t.Errorf("docs/demo.svg is not drawn from these screens (%v): go test ./test -run TestThePictureIsTrue -redraw, and look at it", err)
	}
	if len(svg) > 1500000 {
		t.Errorf("the picture has %d bytes", len(svg))
	}
}

var (
	endLine = regexp.MustCompile(`(?m)^((?:\x1b\[[0-9;]*m)*)rc=0\n?`)
	varies  = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`) // a number or a digest
	cut     = regexp.MustCompile(`[^ ]*…`)                  // where a line ends, which such a number moves
	spaces  = regexp.MustCompile(` +`)
)

// lasting removes what belongs to the test from a screen.
func lasting(screen string) string { return endLine.ReplaceAllString(screen, "$1") }

// plainly is a screen without its colours, and without what differs from run to run: times, digests and random names.
func plainly(screen string) string {
	var out []string
	for l := range strings.SplitSeq(ansi.Strip(screen), "\n") {
		l = spaces.ReplaceAllString(varies.ReplaceAllString(strings.ReplaceAll(l, "▹", "▸"), "0"), " ")
		l = cut.ReplaceAllString(l, "…")
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n") + fmt.Sprintln()
}
