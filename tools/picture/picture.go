// Package picture draws screens of a terminal as one animated SVG, for the README. A test plays the
// screens and keeps the picture true.
package picture

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Frame is a screen with its colours, and how long it stays.
type Frame struct {
	Screen string // lines with SGR sequences, as `tmux capture-pane -e` prints them
	Hold   time.Duration
}

// Sizes in pixels.
const (
	cellWide = 8.4
	cellHigh = 18
	margin   = 14
	bar      = 28 // the window's bar above the screen
)

// The colours of the window, dark in both themes of a page.
const (
	paper = "#16181d"
	ink   = "#d6d9e0"
	dim   = "#8b919e"
)

var colours = map[int]string{30: "#5c6370", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2", 37: ink}

// hard is a space that no viewer folds.
const hard = "\u00a0"

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// SVG returns the frames one after another, forever, in a window of columns by rows. The first line
// of title is its accessible name.
func SVG(title string, columns, rows int, frames []Frame) []byte {
	width, height := float64(columns)*cellWide+2*margin, float64(rows*cellHigh+bar+2*margin)
	var total time.Duration
	for _, f := range frames {
		total += f.Hold
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n", width, height, width, height, html.EscapeString(title))
	fmt.Fprintf(&b, "<style>\ntext{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:%s}\n", ink)
	fmt.Fprintf(&b, ".b{font-weight:bold}.d{fill:%s}g.f{opacity:0;animation:%.1fs step-end infinite}\n", dim, total.Seconds())
	var at time.Duration
	for i, f := range frames {
		from, to := 100*at.Seconds()/total.Seconds(), 100*(at+f.Hold).Seconds()/total.Seconds()
		first := 1
		if i > 0 {
			first = 0
		}
		fmt.Fprintf(&b, "#f%d{animation-name:k%d}@keyframes k%d{0%%{opacity:%d}%.3f%%{opacity:1}%.3f%%{opacity:0}}\n", i, i, i, first, from, to)
		at += f.Hold
	}
	fmt.Fprintf(&b, "@media (prefers-reduced-motion:reduce){g.f{animation:none}#f%d{opacity:1}}\n</style>\n", len(frames)-1)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	for i, c := range []string{"#e06c75", "#e5c07b", "#98c379"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5.5" fill="%s"/>`, 18+18*i, c)
	}
	b.WriteString("\n")
	for i, f := range frames {
		fmt.Fprintf(&b, `<g class="f" id="f%d">`+"\n", i)
		style := look{}
		for n, line := range strings.Split(strings.TrimRight(f.Screen, "\n"), "\n") {
			if n < rows {
				style = draw(&b, line, n, columns, style)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// look is how text is drawn.
type look struct {
	bold, dim, reverse bool
	colour             int
}

// draw draws a line, and returns the style at its end.
func draw(b *bytes.Buffer, line string, row, columns int, style look) look {
	at := 0
	for line != "" {
		next := sgr.FindStringSubmatchIndex(line)
		text := line
		if next != nil {
			text = line[:next[0]]
		}
		text = ansi.Truncate(text, columns-at, "")
		part(b, text, row, at, style)
		at += ansi.StringWidth(text)
		if next == nil {
			break
		}
		style = style.set(line[next[2]:next[3]])
		line = line[next[1]:]
	}
	return style
}

func part(b *bytes.Buffer, text string, row, at int, style look) {
	wide := ansi.StringWidth(text)
	if wide == 0 || strings.TrimSpace(text) == "" && !style.reverse {
		return
	}
	x, y := margin+float64(at)*cellWide, float64(bar+margin+row*cellHigh)
	fill := colours[style.colour]
	if style.reverse {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.0f" width="%.1f" height="%d" fill="%s"/>`, x, y, float64(wide)*cellWide, cellHigh, ink)
		fill = paper
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.0f" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`, x, y+13, float64(wide)*cellWide)
	switch {
	case style.bold:
		b.WriteString(` class="b"`)
	case style.dim:
		b.WriteString(` class="d"`)
	}
	if fill != "" {
		fmt.Fprintf(b, ` style="fill:%s"`, fill)
	}
	fmt.Fprintf(b, ">%s</text>\n", html.EscapeString(strings.ReplaceAll(text, " ", hard)))
}

// set applies the numbers of an SGR sequence.
func (l look) set(numbers string) look {
	for s := range strings.SplitSeq(numbers, ";") {
		n, _ := strconv.Atoi(s) // "" is 0
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 7:
			l.reverse = true
		case n == 22:
			l.bold, l.dim = false, false
		case n == 27:
			l.reverse = false
		case n == 39:
			l.colour = 0
		case n >= 30 && n <= 37:
			l.colour = n
		case n >= 90 && n <= 97:
			l.colour = n - 60
		}
	}
	return l
}
